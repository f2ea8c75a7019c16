// Lists and their detail: focus is selection, choosing a row replaces the detail alone, and the address follows.

export const find = (selector, from = document) => from.querySelector(selector);
export const all = (selector, from = document) => [...from.querySelectorAll(selector)];

const NARROW = matchMedia("(max-width: 50rem)"); // one column: the detail covers the list
const place = () => find("[data-place]");

export const rows = () => all("[data-row]").filter((row) => row.checkVisibility() || row.closest("[data-place].chosen"));
export const selected = () => find('[data-row][aria-current="true"]');
export const detail = () => find("#detail");
export const isCovered = () => NARROW.matches && Boolean(place()?.classList.contains("chosen"));

// The record that a key acts on: the row with the ring, or the detail where it covers the list.
export function target() {
  if (find("#detail > article > form[data-keeps]")) return null; // a new record: no key acts on a row beside it
  if (isCovered()) return find("[data-ref], [data-n]", detail());
  const at = document.activeElement?.closest?.("[data-row]");
  return at ?? selected();
}

export const WAIT = "Save or cancel your text first.";
export const isDirty = () => all("form[data-keeps]").some(changed);
const changed = (form) => form.checkVisibility() && [...form.elements].some(isChanged);
function isChanged(field) {
  if (field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
  return "defaultValue" in field && field.type !== "hidden" && field.type !== "checkbox" && field.value !== field.defaultValue;
}
// What was sent is no longer unsaved.
export function settle(form) {
  for (const field of form.elements) {
    if (field.type === "radio") field.defaultChecked = field.checked;
    else if (field.options) for (const one of field.options) one.defaultSelected = one.selected;
    else if ("defaultValue" in field) field.defaultValue = field.value;
  }
}

let asking = null;

// Selects a row: it gets the ring and the focus, stays on the screen, and its detail is shown beside it.
export function select(row, { focus = true, opens = false, warn = () => {} } = {}) {
  if (!row) return false;
  const before = selected();
  if (row !== before && detail() && isDirty()) {
    warn(WAIT);
    before?.focus();
    return false;
  }
  for (const other of all('[data-row][aria-current="true"]')) if (other !== row) other.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  if (focus && document.activeElement !== row) row.focus({ preventScroll: true });
  if (!isCovered()) row.scrollIntoView({ block: "nearest" });
  if (row.href && detail() && !row.hasAttribute("data-leaves") && (row !== before || opens)) show(row, opens);
  return true;
}

function show(row, opens) {
  const covers = NARROW.matches;
  if (covers && opens && !place().classList.contains("chosen")) {
    history.replaceState({ scroll: scrollY }, "");
    place().classList.add("chosen");
    history.pushState({ covers: true }, "", row.href);
    scrollTo(0, 0);
  } else history.replaceState(history.state, "", covers && !place().classList.contains("chosen") ? location.href : row.href);
  if (covers && !place().classList.contains("chosen")) return;
  load(row.href);
}

export async function load(address) {
  asking?.abort();
  asking = new AbortController();
  const mine = asking;
  detail().setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html", "X-Kept-Part": "detail" }, signal: mine.signal });
    if (!answer.ok) throw new Error(answer.status);
    const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine === asking) detail().replaceChildren(...drawn.body.childNodes);
  } catch (error) {
    if (error.name === "AbortError") return;
  }
  if (mine === asking) {
    detail().removeAttribute("aria-busy");
    detail().scrollTop = 0;
    const part = new URL(address, location.href).hash;
    const at = part && find(part, detail());
    for (const turn of all(".turn.at", detail())) turn.classList.remove("at");
    if (at) (at.classList.add("at"), at.scrollIntoView({ block: "center" }));
  }
}

export const loaded = async () => {
  for (let n = 0; n < 60 && detail()?.hasAttribute("aria-busy"); n++) await new Promise((done) => setTimeout(done, 50));
};

// Draws the view again in place: the row that was selected stays so; if it is gone, the one in its place is.
export async function refresh(address = location.href, { keep = true } = {}) {
  // A memory that the address opened keeps its row; one that has left the list gives way to the next.
  const part = find("[data-opened]") ? {} : { "X-Kept-Part": "again" };
  const answer = await fetch(address, { headers: { Accept: "text/html", ...part } });
  if (!answer.ok) return false;
  const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
  const was = selected();
  const at = rows().indexOf(was);
  const name = was && nameOf(was);
  const hadFocus = document.activeElement === was;
  const edited = Boolean(detail()) && isDirty();
  const marks = keep ? all("[data-row].marked").map(nameOf) : [];
  const keepsText = takeText();
  const isOther = !edited && !find("[data-live]") && partsOf(document) !== partsOf(drawn);
  if (isOther) find("main").replaceChildren(...find("main", drawn).childNodes);
  for (const part of all(isOther ? "[data-swap]:not(main *)" : "[data-swap]")) {
    const fresh = find(`[data-swap="${part.dataset.swap}"]`, drawn);
    if (!fresh) part.replaceChildren();
    else if (part.dataset.swap !== "detail" || !edited) part.replaceWith(fresh);
  }
  if (!find("[data-row]")) place()?.classList.remove("chosen"); // the last one is decided: the list says how to go on
  for (const row of rows()) if (marks.includes(nameOf(row))) row.classList.add("marked");
  keepsText();
  document.body.dataset.lastEvent = drawn.body.dataset.lastEvent;
  document.dispatchEvent(new Event("drawn"));
  if (!keep) return true;
  if (at < 0) return selected()?.focus({ preventScroll: true }), true;
  const now = rows();
  const again = now.find((row) => nameOf(row) === name) ?? now[Math.min(at, now.length - 1)];
  if (!again) return true;
  for (const row of now) if (row !== again) row.removeAttribute("aria-current");
  const isMoved = nameOf(again) !== name;
  again.setAttribute("aria-current", "true");
  if (hadFocus) again.focus({ preventScroll: true });
  if (!isCovered()) again.scrollIntoView({ block: "nearest" });
  if (again.href && detail() && !again.hasAttribute("data-leaves") && !edited && (isMoved || find("[data-ref]", detail())?.dataset.ref !== again.dataset.ref)) {
    if (!NARROW.matches || isCovered()) {
      history.replaceState(history.state, "", again.href);
      await load(again.href);
    }
  }
  return true;
}

// A view that is empty has other parts than one that is not.
const partsOf = (page) => all("main [data-swap]", page).map((part) => part.dataset.swap).join(" ");

// What was typed and marked in a list to judge, to be put into the list that is drawn in its place.
function takeText() {
  const written = new Map(all("form[data-keeps] [data-statement]").map((row) => [row.dataset.statement, fieldsOf(row)]));
  return () => {
    for (const row of all("form[data-keeps] [data-statement]")) {
      const before = written.get(row.dataset.statement) ?? [];
      fieldsOf(row).forEach((field, place) => {
        const old = before[place];
        if (!old || !isChanged(old)) return;
        if (field.type === "radio") field.checked = old.checked;
        else field.value = old.value;
      });
    }
  };
}
const fieldsOf = (row) => all("textarea, select, [type=radio]", row);

export const nameOf = (row) => row.dataset.ref ?? row.dataset.n ?? row.dataset.name ?? row.getAttribute("href");

// Back from a detail that covered its list.
addEventListener("popstate", (event) => {
  if (!place()) return;
  const covers = NARROW.matches;
  const row = rows().find((one) => one.href === location.href);
  place().classList.toggle("chosen", covers && Boolean(row) && event.state?.scroll === undefined);
  if (row) select(row);
  else selected()?.focus({ preventScroll: true });
  if (event.state?.scroll !== undefined) scrollTo(0, event.state.scroll);
});

// The list of moments scrolls alone: the one that is shown is in it.
const moment = find('.moment-list [aria-current="page"]');
if (moment && !NARROW.matches) {
  const list = moment.closest(".moment-list");
  list.scrollTop = moment.offsetTop - list.clientHeight / 2;
}

// A list that is opened in another tab, or again, shows the row that its address names.
const chosen = selected();
// In "What the agent saw" the rows stand below the text that they open: there the page stays at its top.
if (chosen && document.body.dataset.view !== "saw" && /[?&](ref|item|session|task)=/.test(location.search) && !isCovered()) {
  chosen.focus({ preventScroll: true });
  const { top, bottom } = chosen.getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) chosen.scrollIntoView({ block: "center" });
}
