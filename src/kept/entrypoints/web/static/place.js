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
  if (isCovered()) return find("[data-ref], [data-n]", detail());
  const at = document.activeElement?.closest?.("[data-row]");
  return at ?? selected();
}

export const isDirty = () => all("form[data-keeps]").some(changed);
const changed = (form) =>
  form.checkVisibility() && [...form.elements].some((field) => ("defaultValue" in field && field.type !== "hidden" && field.type !== "checkbox" ? field.value !== field.defaultValue : false));

let asking = null;

// Selects a row: it gets the ring and the focus, stays on the screen, and its detail is shown beside it.
export function select(row, { focus = true, opens = false, warn = () => {} } = {}) {
  if (!row) return false;
  const before = selected();
  if (row !== before && detail() && isDirty()) {
    warn("Save or cancel your text first.");
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
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
  const was = selected();
  const at = rows().indexOf(was);
  const name = was && nameOf(was);
  const hadFocus = document.activeElement === was;
  const edited = isDirty();
  for (const part of all("[data-swap]")) {
    const fresh = find(`[data-swap="${part.dataset.swap}"]`, drawn);
    if (!fresh) part.replaceChildren();
    else if (part.dataset.swap !== "detail" || !edited) part.replaceWith(fresh);
  }
  document.body.dataset.lastEvent = drawn.body.dataset.lastEvent;
  if (!keep || at < 0) return true;
  const now = rows();
  const again = now.find((row) => nameOf(row) === name) ?? now[Math.min(at, now.length - 1)];
  if (!again) return true;
  for (const row of now) if (row !== again) row.removeAttribute("aria-current");
  const isOther = nameOf(again) !== name;
  again.setAttribute("aria-current", "true");
  if (hadFocus) again.focus({ preventScroll: true });
  if (!isCovered()) again.scrollIntoView({ block: "nearest" });
  if (again.href && detail() && !edited && (isOther || find("[data-ref]", detail())?.dataset.ref !== again.dataset.ref)) {
    if (!NARROW.matches || isCovered()) {
      history.replaceState(history.state, "", again.href);
      await load(again.href);
    }
  }
  return true;
}

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

// A list that is opened in another tab, or again, shows the row that its address names.
const chosen = selected();
if (chosen && /[?&](ref|item|session|receipt|task)=/.test(location.search) && !isCovered()) {
  chosen.focus({ preventScroll: true });
  const { top, bottom } = chosen.getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) chosen.scrollIntoView({ block: "center" });
}
