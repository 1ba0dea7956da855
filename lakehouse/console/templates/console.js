// Asks every other second whether the page looks otherwise now, and puts what is new in its place.
"use strict";
const POLL = 2000, PATIENCE = 8000;
let tag = "", seen = performance.now();

function age(seconds) {
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= unit) return `${Math.floor(seconds / unit)} ${name}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

function tick() {
  const since = (performance.now() - seen) / 1000;
  for (const time of document.querySelectorAll("time[data-before]")) {
    time.textContent = `${age(since + Number(time.dataset.before))} ago`;
  }
  // As the console says it, also where it cannot be heard.
  document.body.classList.toggle("old", since > Number(document.getElementById("view").dataset.due));
}

function put(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("view");
  const focused = document.activeElement?.getAttribute("href");
  document.getElementById("view").replaceWith(fresh);
  document.title = fresh.dataset.title;
  if (focused) [...document.links].find((link) => link.getAttribute("href") === focused)?.focus({preventScroll: true});
}

async function renew() {
  // A page that nobody looks at asks nobody, and text that somebody copies stays.
  if (document.hidden || !getSelection().isCollapsed) return;
  try {
    const answer = await fetch(location.href, {
      cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}, signal: AbortSignal.timeout(PATIENCE),
    });
    const shown = answer.headers.has("ETag");
    if (shown) seen = performance.now() - 1000 * Number(answer.headers.get("Age"));
    if (shown && answer.status !== 304) {
      put(await answer.text());
      tag = answer.headers.get("ETag");
    }
    document.body.classList.toggle("lost", !shown);
  } catch {
    document.body.classList.add("lost");
  }
  tick();
}

async function go() {
  await renew();
  setTimeout(go, POLL);
}

document.addEventListener("visibilitychange", renew);
setInterval(tick, 1000);
go();
