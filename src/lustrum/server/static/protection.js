// The slider: what one published number can be in truth. Without it the picture shows all of them.

const slider = document.querySelector("#shown");
const said = document.querySelector("#said");
function show() {
  const [shown, step] = [slider.valueAsNumber, Number(slider.step)];
  document.querySelector("#read").textContent = shown;
  const [low, high] = [Math.max(0, shown - step + 1), shown + step - 1];
  said.textContent = said.dataset.words.replace("SHOWN", shown).replace("LOW", low).replace("HIGH", high);
  for (const row of document.querySelectorAll("#behind g")) row.classList.toggle("pale", Number(row.dataset.shown) !== shown);
}
slider.addEventListener("input", show);
slider.closest("p").hidden = false;
show();
