// Reads a table with jsonstat-toolkit and prints its cells as JSON: node reading.mjs TOOLKIT ADDRESS
const [toolkit, address] = process.argv.slice(2);
const { default: JSONstat } = await import(toolkit);
const table = JSONstat(await (await fetch(address)).json());
const rows = table.toTable({ type: "arrobj", content: "label", status: true });
const cells = rows.map((row) => [table.id.map((name) => row[name]), row.value, row.status ?? "F"]);
console.log(JSON.stringify({ cells, notes: table.note }));
