function n(r){return r?`${r.charAt(0).toUpperCase()}${r.slice(1)}${/[.!?]$/.test(r)?"":"."}`:""}export{n as a};
