import "./style/base.css";
import "./style/parts.css";
import "./style/shell.css";
import "./style/pages.css";
import { render } from "preact";
import { App } from "./app/app";
import { load } from "./state/session";
import { paint } from "./state/theme";

paint();
void load();
const page = document.getElementById("page");
if (page) render(<App />, page);
