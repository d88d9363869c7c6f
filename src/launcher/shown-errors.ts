/**
 * The errors that end ranks, as a job shows them. Of each rank that only followed another's failure, one line is shown,
 * when it comes. Of the others, all that Node prints is shown, when the job has ended, and the error of the rank that
 * failed first comes last. So the cause of a job's failure stands at the end of its output, whole.
 *
 * A rank says with a mark that Node is about to print an error (start/fatal-errors.ts). What comes between the
 * mark and the line in which Node names its version is the error; all else is the rank's own output, and passes.
 */
import { FATAL_MARK, FATAL_MARK_END, type FatalMark } from '../start/fatal-errors.ts';

/** The last line of what Node prints; no stack is as long as that. */
const LAST_LINE = /^Node\.js v[^\n]*(\n|$)/m;
const MOST_CHARACTERS = 1 << 18;
/**
 * The line of code that Node prints above an error, where that is a line of Node or of this library: V8 names the line
 * that threw, or, for what a promise was rejected with, whatever line runs then. The stack says where the program is.
 */
const FOREIGN_LINE = /^(?:node:internal\/|[^\n]*\/onesided-(?:library|command)\.js:)[^\n]*\n[^\n]*\n[ \t]*\^+\n\n?/;

/** Takes errors out of one rank's stderr. All text is Latin-1 for bytes. */
export class FatalSieve {
  readonly #take: (error: string, mark: FatalMark) => void;
  /** Outside of an error: what may be the beginning of a mark. Inside: the error so far. */
  #rest = '';
  #inside: FatalMark | undefined;

  /** @param take is given each error, without Node's last line */
  constructor(take: (error: string, mark: FatalMark) => void) {
    this.#take = take;
  }

  /** @returns what is the rank's own output */
  feed(chunk: string): string {
    let own = '';
    let text = this.#rest + chunk;
    this.#rest = '';
    for (;;) {
      if (this.#inside === undefined) {
        const at = markIn(text);
        own += text.slice(0, at);
        text = text.slice(at);
        const end = text.indexOf(FATAL_MARK_END);
        if (end < 0) break;
        this.#inside = parse(text.slice(FATAL_MARK.length, end));
        text = text.slice(end + FATAL_MARK_END.length);
      }
      const last = LAST_LINE.exec(text);
      // The line may not be all there yet.
      if (last === null || last[1] === '') break;
      this.#end(text.slice(0, last.index));
      text = text.slice(last.index + last[0].length);
    }
    if (text.length > MOST_CHARACTERS) {
      this.#inside = undefined;
      return own + text;
    }
    this.#rest = text;
    return own;
  }

  /** The stream has ended. @returns what is left of the rank's own output */
  end(): string {
    const text = this.#rest;
    this.#rest = '';
    if (this.#inside === undefined) return text;
    this.#end(text.replace(LAST_LINE, ''));
    return '';
  }

  #end(error: string): void {
    const mark = this.#inside!;
    this.#inside = undefined;
    this.#take(error.replace(FOREIGN_LINE, ''), mark);
  }
}

/** Where a mark, or what may become one, begins; the text's length if nowhere. */
function markIn(text: string): number {
  const whole = text.indexOf(FATAL_MARK);
  if (whole >= 0) return whole;
  const begin = text.lastIndexOf('\x1b');
  return begin >= 0 && FATAL_MARK.startsWith(text.slice(begin)) ? begin : text.length;
}

function parse(latin1: string): FatalMark {
  try {
    return JSON.parse(Buffer.from(latin1, 'latin1').toString()) as FatalMark;
  } catch {
    return {};
  }
}
