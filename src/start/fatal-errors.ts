/**
 * What a rank says of the error that ends it, so that its launcher can tell a cause from what only follows it.
 *
 * When a rank of many fails, all that wait for it fail, too, and Node prints the error of each of them: fifteen lines a
 * rank, with the one that matters somewhere among them. Under a launcher that reads its output, a rank prints a mark
 * just before Node prints an unhandled error. If the error is only that another rank has failed, the mark has one line
 * to be shown instead of the whole (launcher/shown-errors.ts makes use of it). Nothing else changes: Node prints what
 * it prints, and a program that handles its errors itself is never spoken for.
 */

/** An operating system command that no terminal knows, in case one gets to see it. */
export const FATAL_MARK = '\x1b]onesided-fatal;';
export const FATAL_MARK_END = '\x07\n';

/** Set by a launcher that reads a rank's stderr. */
export const FATAL_VARIABLE = 'ONESIDED_FATAL_MARK';

/** What stands in a mark. */
export interface FatalMark {
  /** In place of the error, which only follows another rank's failure. */
  readonly line?: string | undefined;
}

/** Has this process print marks, if its launcher asks for them. */
export function markFatalErrors(rank: number): void {
  const asked = process.env[FATAL_VARIABLE] === '1';
  // Not for programs that this one starts.
  delete process.env[FATAL_VARIABLE];
  if (!asked) return;
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    const mark: FatalMark = { line: followingLine(error, rank) };
    // Node prints the error after the last listener, so that what those of the program write is its own output.
    process.once('exit', () => process.stderr.write(`${FATAL_MARK}${JSON.stringify(mark)}${FATAL_MARK_END}`));
  });
}

/** Errors whose causes are looked at. */
const MOST_CAUSES = 8;

/**
 * One line for an error that is, or is caused by, the failure of another rank than this one; undefined for any other.
 */
export function followingLine(error: unknown, rank: number): string | undefined {
  const words: string[] = [];
  let at: unknown = error;
  for (let depth = 0; depth < MOST_CAUSES && at instanceof Error; depth++) {
    const { code, rank: failed } = at as { code?: unknown; rank?: unknown };
    words.push(at.message.replace(/\s*\n\s*/g, ' '));
    if (code === 'ERR_RMA_RANK_FAILED' && failed !== rank) {
      const place = programLine(at.stack ?? '');
      const kind = `${(error as Error).name}${at === error ? ` [${code}]` : ''}`;
      return `${kind}: ${words.join(': ')}${place === undefined ? '' : ` (at ${place})`}`;
    }
    at = at.cause;
  }
  return undefined;
}

/**
 * The folder of this library, with a slash, or nothing if it was bundled with the program. Stacks name this module, or
 * one of the package's own bundles (place.ts).
 */
function libraryFolder(): string | undefined {
  const own = /((?:file:\/\/)?\/[^\n]*\/)(?:start\/fatal-errors\.[jt]s|onesided-(?:library|command)\.js):\d+/;
  return own.exec(new Error().stack ?? '')?.[1];
}

/** The first place in a stack that is neither the library's nor Node's. */
function programLine(stack: string): string | undefined {
  const library = libraryFolder();
  for (const [, place] of stack.matchAll(/^ +at (?:async )?(?:.*\()?((?:file:\/\/)?\/[^\n]*?:\d+:\d+)\)?$/gm)) {
    if (library === undefined || !place.startsWith(library)) return place;
  }
  return undefined;
}
