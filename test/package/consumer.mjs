/**
 * A project that depends on this package, as its tests need it: a fresh folder, what is in `consumer/`, and commands
 * that are run there. For test/package/install.test.ts and scripts/test-package.mjs.
 */
import { spawn } from 'node:child_process';
import {
  chownSync,
  cpSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROGRAMS = fileURLToPath(new URL('consumer', import.meta.url));
/** No command here takes so long; a hang ends. */
const DEADLINE_MS = 600_000;

/**
 * Runs a command and gives what it printed; an Error, with all that it printed, unless it ends with `code`.
 * @param {string[]} command
 * @param {{ cwd: string, env?: Record<string, string | undefined>, user?: number, code?: number, quiet?: boolean }}
 * options
 * @returns {Promise<string>} its standard output, and standard error stream unless `quiet`
 */
export async function run(command, { cwd, env = process.env, user, code: expected = 0, quiet = false }) {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
    ...(user === undefined ? {} : { uid: user, gid: user }),
  });
  let printed = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (quiet ? (errors += text) : (printed += text)));
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (exit, signal) => resolve(exit ?? signal));
  });
  if (code === expected) return printed;
  throw new Error(
    `in ${cwd}: ${command.join(' ')}\nended with ${code}, expected ${expected}:\n${(printed + errors).slice(-4000)}`,
  );
}

/**
 * Packs the package in `folder` as it is.
 * @param {Record<string, string>} [settings] of the environment
 * @returns {Promise<string>} the tarball's path
 */
export async function pack(folder, destination, settings = {}) {
  const options = { cwd: folder, env: environment(undefined, settings) };
  const printed = await run(['npm', 'pack', '--pack-destination', destination], options);
  return join(destination, /\S+\.tgz$/m.exec(printed)[0]);
}

/** A new folder for projects, which anybody may read. */
export function workshop() {
  return mkdtempSync(join(tmpdir(), 'onesided-consumer-'));
}

/** A project as `npm init -y` makes one, with the programs of `consumer/`. */
export function project(folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "version": "1.0.0", "private": true }\n');
  cpSync(PROGRAMS, folder, { recursive: true });
  return folder;
}

/**
 * What a command sees: nothing of the npm run that started the tests, a cache of its own for what `onesided build`
 * makes, and no other addon than it finds by itself.
 *
 * @param {string} [home] its HOME, if not this one's
 * @param {Record<string, string>} [extra]
 */
export function environment(home = undefined, extra = {}) {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|ONESIDED_|VITEST|NODE_OPTIONS|NODE_ENV|XDG_|TEST$|CI$)/i.test(name),
  );
  const at = home === undefined ? {} : { HOME: home, XDG_CACHE_HOME: join(home, '.cache') };
  return { ...Object.fromEntries(own), ...at, NO_COLOR: '1', ...extra };
}

/**
 * A folder for `PATH` in which there are Node, npm and what they need, and no compiler.
 * @param {string} folder
 * @param {string[]} npm the folder of an npm's commands, or none for the one in `PATH`
 */
export function withoutCompiler(folder) {
  mkdirSync(folder, { recursive: true });
  const wanted = ['node', 'npm', 'npx', 'sh', 'env', 'git', 'mkdir', 'rm', 'cat', 'uname', 'dirname', 'sed'];
  const places = [dirname(process.execPath), ...process.env['PATH'].split(delimiter)];
  for (const name of wanted) {
    const place = places.find((each) => entries(each).includes(name));
    if (place !== undefined) symlinkSync(join(place, name), join(folder, name));
  }
  return folder;
}

function entries(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Gives a folder and all in it to a user. */
export function give(folder, user) {
  chownSync(folder, user, user);
  for (const name of readdirSync(folder, { recursive: true })) lchownSync(join(folder, name), user, user);
}

/** What first.mjs and its like print on so many ranks, in the order of the ranks. */
export function expected(size) {
  return Array.from({ length: size }, (_, rank) => {
    const line = `rank ${rank} of ${size} was given ${(rank + size - 1) % size}`;
    return size === 1 ? line : `[${rank}] ${line}`;
  });
}

/** The lines of ranks in what a command printed, in the order of the ranks. */
export function ranksIn(printed) {
  return printed
    .split('\n')
    .filter((line) => /rank \d+ of \d+ was given/.test(line))
    .sort();
}
