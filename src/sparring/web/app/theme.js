// Light or dark, before the first paint: the person's last choice, else the system's setting.
// The only script that is no module, because a module would come after that paint.

(function () {
  let kept = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // Storage may be forbidden; then the system decides.
  }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
