import{P as s,Q as n,R as e}from"./chunk-B2M5FPMC.js";var r=s("keys.chosen",null,t=>t===null||e(t)),i=s("keys.pasted",[],e),o=s("dialect","",n);export{r as a,i as b,o as c};
