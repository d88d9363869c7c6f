/** The three styles of communication, and the links of a kernel in one of them. */
import { type Communicator, Window, type WindowInfo } from 'onesided';
import type { Form } from '../calls.ts';
import { AHEAD, type Ends, type Group, type Link, type Style } from './link.ts';
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
  readonly #form: Form;
  readonly #info: WindowInfo;
  readonly #windows: Window<Float64Array>[] = [];
  readonly #groups: Communicator[] = [];
  #made = 0;

  constructor(form: Form, style: StyleName, info: WindowInfo) {
    this.#form = form;
    this.#info = info;
    this.style = STYLES[style];
  }

  /** Collective. @param ranks in the same order at all of them; each rank of the world is in one such group */
  async group(world: Communicator, ranks: readonly number[]): Promise<Group> {
    if (!this.style.oneSided) return { ranks, world, communicator: undefined };
    const communicator = (await world.split(Math.min(...ranks), ranks.indexOf(world.rank)))!;
    this.#groups.push(communicator);
    return { ranks, world, communicator };
  }

  /** Collective, of all ranks of the group in the same order. */
  async make(ends: Ends): Promise<Link> {
    const tag = ++this.#made;
    let window: Window<Float64Array> | undefined;
    const { communicator } = ends.group;
    if (communicator !== undefined) {
      window = await Window.allocate(communicator, Float64Array, AHEAD * ends.capacity, { info: this.#info });
      await window.lockAll();
      this.#windows.push(window);
    }
    return this.style.link(this.#form, ends, tag, window);
  }

  /** Collective. */
  async free(): Promise<void> {
    for (const window of this.#windows) {
      await window.unlockAll();
      await window.free();
    }
    for (const group of this.#groups) await group.free();
  }
}
