import{a as s,b as n,c as e}from"./chunk-7DLEUUAK.js";var r=s("keys.chosen",null,t=>t===null||e(t)),i=s("keys.pasted",[],e),o=s("dialect","",n);export{r as a,i as b,o as c};
