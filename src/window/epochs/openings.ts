/** Where epochs were opened, for messages about one that was left open. */
import { debugs } from '../../debug.ts';

/** For debugging. Takes some microseconds an epoch. */
const NOTE_OPENINGS = debugs('epochs');

/** The rank whose lock was taken, or the call that has opened an epoch. */
export type Opening = number | 'fence' | 'lockAll' | 'start' | 'post';

export class Openings {
  readonly #places = new Map<Opening, string | undefined>();

  /** Called when an epoch is opened; notes where that is, if the program is run so. */
  note(what: Opening): void {
    if (NOTE_OPENINGS) this.#places.set(what, new Error().stack);
  }

  /** For the end of a message. */
  tell(openings: readonly Opening[]): string {
    if (openings.length === 0) return '';
    if (!NOTE_OPENINGS) return ' (set ONESIDED_DEBUG=epochs to see where it was opened)';
    return openings
      .map((what) => {
        // The first line is the error's.
        const frames = (this.#places.get(what) ?? '').split('\n').slice(1);
        const which = typeof what === 'number' ? `The lock of rank ${what} was taken` : `The ${what} epoch was opened`;
        return `\n${which}\n${frames.join('\n')}`;
      })
      .join('');
  }
}
