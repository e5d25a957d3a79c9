import{i as n,m as e}from"./chunk-SDLSWLAF.js";function c({place:a}){let i=e("machines").value.get(a);return n("main",{class:"page",children:n("h1",{children:i?.name??a})})}export{c as MachinePage};
