// Show each flag of a command together with its value, so that no line ends inside a flag.
window.nsCommand = (place, command) => {
  const parts = command.split(/ (?=--)/).flatMap((part, n) => {
    const span = document.createElement("span");
    span.className = "ns-part";
    span.textContent = part;
    return n ? [" ", span] : [span];
  });
  place.replaceChildren(...parts);
};
document.querySelectorAll(".ns-command").forEach((place) => window.nsCommand(place, place.textContent));
