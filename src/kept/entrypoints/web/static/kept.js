// What the page does beyond reading. Without it every view can still be read, and every form still works.

const root = document.documentElement;
const base = document.body.dataset.root;
const find = (selector, from = document) => from.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];

// Theme: the system's, until somebody chooses.
const chosen = localStorage.getItem("kept-theme");
if (chosen) root.dataset.theme = chosen;

function switchTheme() {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("kept-theme", root.dataset.theme);
}

function toast(sentence) {
  const box = Object.assign(document.createElement("div"), { className: "toast" });
  box.append(Object.assign(document.createElement("p"), { textContent: sentence })); // never markup
  find(".toasts").replaceChildren(box);
  leave(box);
}

function leave(box) {
  const go = () => (box.matches(":hover, :focus-within") ? setTimeout(go, 2000) : box.remove());
  setTimeout(go, 8000);
}
all(".toast:not(.error)").forEach(leave);

const ACTIONS = {
  theme: switchTheme,
  help: () => find("#help").showModal(),
  keys: (at) => localStorage.setItem("kept-keys", at.checked ? "on" : "off"),
  copy: (at) => {
    navigator.clipboard?.writeText((find(at.dataset.copy ?? "code", at.dataset.copy ? document : at.closest("li"))).innerText);
    toast("Copied.");
  },
};

document.addEventListener("click", (event) => {
  const at = event.target.closest("[data-do]");
  if (at) ACTIONS[at.dataset.do]?.(at);
});

// A filter is applied as soon as it is chosen.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-auto] select")) event.target.form.requestSubmit();
});
for (const form of all("[data-auto]"))
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // short addresses
  });
addEventListener("pageshow", () => all("[data-auto] :disabled").forEach((field) => (field.disabled = false)));

// Search as you type: the server draws, and the part that changed is put in.
let asked = 0;
find("[data-live] [name=q]")?.addEventListener("input", async (event) => {
  const mine = ++asked;
  await new Promise((done) => setTimeout(done, 150));
  if (mine !== asked) return;
  const address = new URL(location.href);
  address.searchParams.set("q", event.target.value);
  address.searchParams.delete("ref");
  await refresh(address);
  if (mine === asked) history.replaceState(null, "", address);
});

async function refresh(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
  const place = find("#browse") ? "#browse" : "main";
  find(place).replaceWith(find(place, drawn));
}

// Live: the journal, also of other processes. What somebody is typing or reading in is left alone.
const events = new EventSource(document.body.dataset.events);
events.onopen = () => (find(".live").hidden = false);
events.onerror = () => (find(".live").hidden = true);
let due = null;
function changed() {
  clearTimeout(due);
  due = setTimeout(() => {
    const isBusy = find("details.edit[open], dialog[open], main :focus");
    if (isBusy) find(".live").textContent = "Changed";
    else refresh(new URL(location.href));
  }, 300);
}
for (const action of ["remember", "revise", "reinforce", "demote", "pin", "unpin", "forget", "restore", "undo", "resolve", "promote", "erase", "conflict", "session"])
  events.addEventListener(action, changed);

// Keys. Rows are links, so Enter opens them without any help from here.
const VIEWS = { s: "saw", m: "memories", i: "inbox", t: "timeline", e: "sessions", k: "knowledge", h: "health" };
const BUTTONS = { e: "edit", p: "pin", x: "forget", "+": "reinforce", "-": "demote", r: "replay", a: "decide", s: "later" };
let isGoing = false;
const keys = find("[data-do=keys]");
if (keys) keys.checked = localStorage.getItem("kept-keys") !== "off"; // WCAG 2.1.4: single keys can be switched off

function step(by) {
  const rows = all("[data-row], .trace summary");
  const place = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, place + by))]?.focus();
}

function press(name) {
  const near = document.activeElement.closest?.(".card");
  const found = find(`[data-key-of="${name}"]`, near ?? document) ?? find(`main [data-key-of="${name}"]`);
  if (name === "pin") (found ?? find('[data-key-of="unpin"]'))?.click();
  else if (name === "edit" && found) (found.click(), find("details.edit textarea")?.focus());
  else found?.click();
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
  if (target.matches("input:not([type=radio], [type=checkbox]), textarea, select")) {
    if (key === "Escape") target.blur();
    return;
  }
  if (localStorage.getItem("kept-keys") === "off") return;
  if (isGoing) {
    isGoing = false;
    if (VIEWS[key]) location.href = `${base}/${VIEWS[key]}`;
    return;
  }
  if (key === "g") isGoing = true;
  else if (key === "?") ACTIONS.help();
  else if (key === "u") find("[data-undo]")?.click();
  else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (key === "[" || key === "]") {
    const at = find(".strip [aria-current]");
    (key === "[" ? at?.previousElementSibling : at?.nextElementSibling)?.click();
  } else if (key === "/") (event.preventDefault(), find("[type=search]")?.focus());
  else if ("123".includes(key)) find(`[data-key="${key}"]`, target.closest?.(".card") ?? document)?.click();
  else if (BUTTONS[key]) (event.preventDefault(), press(BUTTONS[key]));
});
