// Sends a file that is dropped in as it is. Without scripts a file is named by its place on this machine.

const drop = document.getElementById("drop");
const input = document.getElementById("file");
const said = document.getElementById("said");
const sent = document.getElementById("sent");

async function send(file) {
  said.textContent = "";
  sent.hidden = false;
  try {
    const answer = await fetch(`/import/file?name=${encodeURIComponent(file.name)}`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream" },
      body: file,
    });
    if (!answer.ok) throw new Error(await answer.text());
    location.assign((await answer.json()).address);
  } catch (error) {
    said.textContent = error.message;
    sent.hidden = true;
    input.value = "";
  }
}

drop.hidden = false;
input.addEventListener("change", () => { if (input.files[0]) send(input.files[0]); });
for (const name of ["dragover", "dragenter"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
});
