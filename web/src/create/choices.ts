import { isText, isTexts, remembered } from "../state/preferences";

/** Texts of the keys that a new machine gets; null before the first choice. */
export const chosenKeys = remembered<string[] | null>("keys.chosen", null, (value): value is string[] | null => value === null || isTexts(value));
/** Keys that a person pasted. */
export const pastedKeys = remembered<string[]>("keys.pasted", [], isTexts);
export const usualDialect = remembered<string>("dialect", "", isText);
