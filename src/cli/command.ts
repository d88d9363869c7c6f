/** What a command of `onesided` is, and how its options are read. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearest } from '../options.ts';

export interface Command {
  /** One line for the overview. */
  readonly summary: string;
  /** The text of `onesided <command> --help`. */
  readonly usage: string;
  /** @returns the exit code */
  run(args: string[]): Promise<number> | number;
}

/** A mistake on the command line: its message and a hint go to stderr, the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const HELP = { type: 'boolean', short: 'h' } as const;

/** `--help` among the options of a command. */
export class HelpRequest extends Error {
  override readonly name = 'HelpRequest';
}

/** `parseArgs`, strict, with its messages cut to what helps here. */
export function readOptions<T extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: T,
): ReturnType<typeof parseArgs<{ options: T; strict: true; allowPositionals: true }>> {
  try {
    const parsed = parseArgs({ args, options: { ...options, help: HELP }, strict: true, allowPositionals: true });
    if ((parsed.values as { help?: boolean }).help === true) throw new HelpRequest();
    return parsed as ReturnType<typeof parseArgs<{ options: T; strict: true; allowPositionals: true }>>;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith('ERR_PARSE_ARGS') !== true) throw error;
    // "Unknown option '--x'. To specify a positional argument starting with a '-', …": the first sentence says it.
    const sentence = message.split(/\.\s/)[0].replace(/\.$/, '');
    const [, unknown] = /^Unknown option '--([^']+)'/.exec(sentence) ?? [];
    const meant = unknown === undefined ? undefined : nearest(unknown, [...Object.keys(options), 'help']);
    throw new UsageError(meant === undefined ? sentence : `${sentence}; did you mean '--${meant}'?`);
  }
}
