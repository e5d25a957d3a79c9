/** CodeMirror for YAML, in a shadow root: there it uses constructed style sheets, and the page's policy forbids any other. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldEffect, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { EditorState, Transaction } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Finding } from "../generated/answers";
import { replacements } from "./diff";
import { spanOf } from "./edit";

export interface YamlEditor {
  text(): string;
  replace(text: string): void;
  show(findings: readonly Finding[]): void;
  goTo(line: number, column: number): void;
  find(): void;
  focus(): void;
  dispose(): void;
}

export interface YamlEditorOptions {
  text: string;
  label: string;
  readOnly: boolean;
  onChange: (text: string) => void;
  onSave: () => void;
}

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--syntax-key)" },
  { tag: [tags.string, tags.special(tags.string), tags.content], color: "var(--syntax-text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.keyword], color: "var(--syntax-atom)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--syntax-comment)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--syntax-mark)" },
  { tag: [tags.meta, tags.typeName, tags.labelName], color: "var(--syntax-meta)" },
]);

const THEME = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--editor-ground)", color: "var(--editor-ink)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--editor-ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--editor-ink)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--editor-ground)", color: "var(--syntax-comment)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--editor-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--editor-selection)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--editor-panel)", color: "var(--editor-ink)", borderColor: "var(--editor-edge)" },
  ".cm-tooltip": { border: "1px solid var(--editor-edge)", borderRadius: "6px" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--editor-edge)" },
  ".cm-panel input, .cm-panel button": { font: "inherit", color: "inherit" },
  ".cm-textfield": { backgroundColor: "var(--editor-ground)", border: "1px solid var(--editor-edge)", borderRadius: "4px", padding: "4px 6px" },
  ".cm-button": { backgroundColor: "var(--editor-ground)", backgroundImage: "none", border: "1px solid var(--editor-edge)", borderRadius: "4px", padding: "4px 8px" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--editor-line)", border: "1px solid var(--editor-edge)", color: "inherit" },
  ".cm-diagnostic": { fontFamily: "var(--font)", padding: "6px 10px" },
  ".cm-searchMatch": { backgroundColor: "var(--editor-match)" },
  ".cm-selectionMatch": { backgroundColor: "var(--editor-line)" },
});

export function openEditor(parent: HTMLElement, options: YamlEditorOptions): YamlEditor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open", delegatesFocus: true });
  const view = new EditorView({ root, parent: root, state: stateOf(options) });
  view.dom.style.height = "100%";
  const status = statusOf(options.text);
  if (status) view.dispatch({ effects: foldEffect.of(status) });
  return {
    text: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: replacements(view.state.doc.toString(), text), annotations: Transaction.addToHistory.of(false) }),
    show: (findings) => view.dispatch(setDiagnostics(view.state, findings.map((finding) => diagnosticOf(view.state.doc.toString(), finding)))),
    goTo: (line, column) => {
      const { from, to } = spanOf(view.state.doc.toString(), line, column);
      view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    find: () => openSearchPanel(view),
    focus: () => view.focus(),
    dispose: () => view.destroy(),
  };
}

function stateOf(options: YamlEditorOptions): EditorState {
  return EditorState.create({
    doc: options.text,
    extensions: [
      lineNumbers(),
      foldGutter(),
      lintGutter(),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      indentOnInput(),
      indentUnit.of("  "),
      bracketMatching(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      search({ top: false }),
      yaml(),
      syntaxHighlighting(COLOURS),
      THEME,
      EditorState.readOnly.of(options.readOnly),
      EditorView.contentAttributes.of({ "aria-label": options.label, "aria-readonly": String(options.readOnly), tabindex: "0" }),
      keymap.of([
        { key: "Mod-s", preventDefault: true, run: () => (options.onSave(), true) },
        ...searchKeymap,
        ...historyKeymap,
        ...foldKeymap,
        ...lintKeymap,
        ...defaultKeymap,
        indentWithTab,
      ]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) options.onChange(update.state.doc.toString());
      }),
    ],
  });
}

/** The lines of the status below its first one. The server writes it, so it begins folded. */
function statusOf(text: string): { from: number; to: number } | null {
  const found = /^status:.*\n(?:[ -].*\n?)+/m.exec(text);
  if (!found) return null;
  const from = found.index + found[0].indexOf("\n");
  const to = found.index + found[0].trimEnd().length;
  return to > from ? { from, to } : null;
}

function diagnosticOf(text: string, finding: Finding): Diagnostic {
  const severity = finding.severity === "note" ? "info" : finding.severity;
  const message = finding.field ? `${finding.field}: ${finding.message}` : finding.message;
  return { ...spanOf(text, finding.line, finding.column), severity, message };
}
