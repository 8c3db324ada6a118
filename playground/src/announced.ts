// What a screen reader is told beside the result; it is about the last change, so that the next one takes it away.
import { effect, signal } from "@preact/signals";
import { state } from "./state";

export const announced = signal("");
let about = state.peek();

export function announce(text: string): void {
  about = state.peek();
  announced.value = text;
}

effect(() => {
  if (state.value !== about) announced.value = "";
});
