/** The three styles of communication, and the links of a kernel in one of them. */
import { type Communicator, Window, type WindowInfo } from 'onesided';
import type { Form } from '../calls.ts';
import { AHEAD, type Ends, type Link, type Style } from './link.ts';
import { blocking } from './styles/blocking.ts';
import { messages } from './styles/messages.ts';
import { nonBlocking } from './styles/non-blocking.ts';

export const STYLES = { messages, blocking, 'non-blocking': nonBlocking } as const satisfies Record<string, Style>;
export type StyleName = keyof typeof STYLES;
export const STYLE_NAMES = Object.keys(STYLES) as readonly StyleName[];

/**
 * The links of a kernel. Each has a window of its own if its style needs one: notifications are counted by window, so
 * whoever takes one knows which link's message has come.
 */
export class Links {
  readonly style: Style;
  readonly #world: Communicator;
  readonly #form: Form;
  readonly #info: WindowInfo;
  readonly #windows: Window<Float64Array>[] = [];
  #made = 0;

  constructor(world: Communicator, form: Form, style: StyleName, info: WindowInfo) {
    this.#world = world;
    this.#form = form;
    this.#info = info;
    this.style = STYLES[style];
  }

  /** Collective, of all ranks in the same order, also of those that have no part in the link. */
  async make(ends: Ends): Promise<Link> {
    const tag = ++this.#made;
    let window: Window<Float64Array> | undefined;
    if (this.style.oneSided) {
      window = await Window.allocate(this.#world, Float64Array, AHEAD * ends.capacity, { info: this.#info });
      await window.lockAll();
      this.#windows.push(window);
    }
    return this.style.link(this.#world, this.#form, ends, tag, window);
  }

  /** Collective. */
  async free(): Promise<void> {
    for (const window of this.#windows) {
      await window.unlockAll();
      await window.free();
    }
  }
}
