/**
 * How an agent is started on a host: by a command that gives a shell there, `ssh HOST sh`, whose standard input then
 * gets one line that starts the agent.
 *
 * Nothing else stands on the command line, for a reason: ssh joins its arguments by spaces and has a shell read them,
 * `docker exec` and others pass them on as they are, so what is quoted for one is wrong for the other. A single word
 * without special characters is right for both. What the shell reads from its input is quoted for a shell, once.
 *
 * The shell may read more of its input than the line, so nothing follows the line until the agent has answered. Its
 * `exec` leaves the rest of the input to the agent.
 */
import { hostname } from 'node:os';
import { argumentTypeError, show } from '../../errors.ts';

/** No questions, which nobody could answer, and no waiting for what does not answer. Of two values ssh takes the first. */
const WITHOUT_QUESTIONS: readonly string[] = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=8'];
export const DEFAULT_SSH: readonly string[] = ['ssh', '-x', '-T', ...WITHOUT_QUESTIONS];

/** What the shell prints where it finds no agent to start. */
export const SHELL_TROUBLE = 'onesided-shell ';

/** What the agent needs of its host. */
export interface AgentPlace {
  /** The working directory. */
  readonly folder: string;
  /** Of Node, if it is there; else what `PATH` has. */
  readonly node: string;
  /** The package's `bin/onesided.mjs`, if it is there; else that of `node_modules` at or above the folder. */
  readonly main: string;
}

/**
 * The words of `--ssh`: separated by spaces, with single and double quotes around those that contain some, as
 * `rsync -e` and `GIT_SSH_COMMAND` take them. Within double quotes, and without quotes, a backslash takes the next
 * character as it is.
 */
export function splitCommand(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '\\' && quote !== "'" && i + 1 < text.length) word = (word ?? '') + text[++i];
    else if (c === quote) quote = '';
    else if (quote === '' && (c === "'" || c === '"')) {
      quote = c;
      word ??= '';
    } else if (quote === '' && /\s/.test(c)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + c;
  }
  if (quote !== '') throw argumentTypeError(`--ssh: a quote is not closed in ${show(text)}`);
  if (word !== undefined) words.push(word);
  if (words.length === 0) throw argumentTypeError('--ssh needs a command, as in --ssh "ssh -p 2222"');
  return words;
}

/**
 * The command that gives a shell on a host: its words, with the host in place of each word `{}`, or else behind them,
 * and `sh`. On this host it is `sh` alone.
 * @param ssh the words of `--ssh`, if it was given
 */
export function shellOn(host: string, ssh: readonly string[] | undefined): string[] {
  if (isHere(host, ssh !== undefined)) return ['sh'];
  const isOwnSsh = ssh !== undefined && /(^|\/)ssh$/.test(ssh[0]) && !ssh.some((word) => word.includes('{}'));
  const command = isOwnSsh ? [...ssh, ...WITHOUT_QUESTIONS] : (ssh ?? DEFAULT_SSH);
  const named = command.map((word) => word.replaceAll('{}', host));
  return command.some((word) => word.includes('{}')) ? [...named, 'sh'] : [...named, host, 'sh'];
}

/** `localhost` is this host, and so is its name, unless a command says what names mean. */
function isHere(host: string, asked: boolean): boolean {
  return host === 'localhost' || (!asked && (host === hostname() || host === '127.0.0.1' || host === '::1'));
}

/** A word as a shell reads it: nothing in it means anything. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The line that has a shell become the agent. Whatever a path contains, it is one line for the shell. */
export function startLine({ folder, node, main }: AgentPlace): string {
  const steps = [
    `node=${quoted(node)} main=${quoted(main)} folder=${quoted(folder)}`,
    `trouble() { printf '%s%s\\n' ${quoted(SHELL_TROUBLE)} "$1"; exit 1; }`,
    '{ cd "$folder"; } 2>/dev/null || trouble folder',
    '[ -x "$node" ] || node=$(command -v node) || trouble node',
    'up=.; while ! [ -f "$main" ]; do main=$up/node_modules/onesided/bin/onesided.mjs; ' +
      '[ -f "$main" ] && break; [ "$(cd "$up" && pwd -P)" = / ] && trouble package; up=$up/..; done',
    'exec "$node" "$main" agent',
  ];
  return `${steps.join('; ')}\n`;
}

/** What the shell has said, in words. */
export function troubleInWords(trouble: string, { folder, node, main }: AgentPlace): string {
  switch (trouble) {
    case 'folder':
      return `there is no directory ${show(folder)} that can be entered; --wdir names another one`;
    case 'node':
      return `Node is neither at ${node} nor in the PATH of a command there`;
    default:
      return `the package onesided is neither at ${main} nor in a node_modules at or above ${show(folder)}; install it`;
  }
}
