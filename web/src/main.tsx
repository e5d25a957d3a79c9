import "./style/base.css";
import "./style/parts.css";
import "./style/shell.css";
import "./style/pages.css";
import "./style/create.css";
import { render } from "preact";
import { App } from "./app/app";
import { listen } from "./app/keys";
import { route } from "./app/routes";
import { load } from "./state/session";
import { paint } from "./state/theme";
import { topicsOf } from "./topics/topics";

paint();
listen();
void load(topicsOf(route.value.page));
const page = document.getElementById("page");
if (page) render(<App />, page);
