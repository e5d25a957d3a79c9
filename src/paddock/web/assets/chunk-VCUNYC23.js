import{j as s,k as n,l as e}from"./chunk-VE7SGHQ5.js";var r=s("keys.chosen",null,t=>t===null||e(t)),i=s("keys.pasted",[],e),o=s("dialect","",n);export{r as a,i as b,o as c};
