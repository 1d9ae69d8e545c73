// Tell the server the browser's time zone, so that every time on every page is the reader's own.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.includes(`timezone=${encodeURIComponent(zone)}`)) return;
  document.cookie = `timezone=${encodeURIComponent(zone)};path=/;max-age=31536000;samesite=lax`;
})();
