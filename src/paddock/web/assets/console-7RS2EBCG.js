import{Fa as o,J as i,Ma as n,N as r,Na as d,b as e,ea as t,l as a}from"./chunk-B2M5FPMC.js";t();o();i(n(r.value.page));var l=document.getElementById("page");l&&e(a(d,{}),l);
