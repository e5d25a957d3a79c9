import{P as s,Q as n,R as e}from"./chunk-F57JL5NR.js";var r=s("keys.chosen",null,t=>t===null||e(t)),i=s("keys.pasted",[],e),o=s("dialect","",n);export{r as a,i as b,o as c};
