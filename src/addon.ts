/**
 * Where the addon may be, and which of these places has one.
 *
 * 1. `ONESIDED_ADDON=PATH`: that file and no other.
 * 2. `build/native/Release` in a clone of the repository.
 * 3. Beside the bundle that this module has become a part of.
 * 4. The user's cache, which `onesided build` writes: outside of `node_modules`, so that it outlives `npm ci`.
 * 5. `prebuilds/` of the package, which a bundle does not have: linux-x64 and linux-arm64, for glibc.
 *
 * An addon of another version than the package is refused: both sides of the interface change together.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { bundled, moduleFolder, packageFolder, userCacheFolder } from './place.ts';
import { VERSION } from './version.ts';

const FILE = 'onesided.node';
/**
 * The version of Node-API that the addon is compiled for: it runs on every Node that has it, which all supported ones
 * do.
 */
const ABI = 'napi8';

/** A place where the addon was looked for. */
export interface AddonAttempt {
  readonly path: string;
  /** What the place is: `the package's prebuilt addon`, …. */
  readonly place: string;
  /** Why there is no addon from there; absent for the one that was loaded. */
  readonly failure?: string;
}

export interface AddonFound {
  readonly addon?: unknown;
  /** Where it was loaded from. */
  readonly path?: string;
  /** Why it was not. One line. */
  readonly reason?: string;
  /** Every place that was looked at, in this order. */
  readonly attempts: readonly AddonAttempt[];
}

/** `linux-x64-glibc`: what an addon has to be compiled for to run here. */
function addonTarget(): string {
  return `${process.platform}-${process.arch}-${cLibrary()}`;
}

/**
 * The C library that this Node is linked with: `glibc`, `musl`, or `static` for neither.
 * It is read from the start of the program's file, which names its dynamic loader.
 */
function cLibrary(): 'glibc' | 'musl' | 'static' {
  const start = Buffer.alloc(4096);
  let file: number;
  try {
    file = openSync('/proc/self/exe', 'r');
  } catch {
    return 'glibc';
  }
  try {
    readSync(file, start, 0, start.length, 0);
  } finally {
    closeSync(file);
  }
  if (start.includes('/ld-musl-')) return 'musl';
  return start.includes('/ld-linux') ? 'glibc' : 'static';
}

/**
 * The file that `onesided build` writes, and that is found there from then on: for this user, version, ABI and
 * platform. `undefined` for a user without a home, as in some containers: no folder that others can write to takes its
 * place.
 */
export function cachedAddon(): string | undefined {
  const cache = userCacheFolder();
  if (cache === undefined) return undefined;
  return join(cache, VERSION, `${ABI}-${addonTarget()}`, FILE);
}

/** What to do about an addon that is missing, for messages: nothing helps on other systems than Linux. */
export function addonAdvice(): string {
  return process.platform === 'linux' ? 'build it with "npx onesided build"' : 'there is none for this system';
}

interface Candidate {
  readonly path: string;
  readonly place: string;
  /** The file must be the user's own, or root's: with a home like /tmp, others could have put it there. */
  readonly own?: boolean;
}

function namedAddon(): string | undefined {
  const named = process.env['ONESIDED_ADDON'];
  return named === undefined || named === '' ? undefined : resolve(named);
}

function candidates(): Candidate[] {
  const named = namedAddon();
  if (named !== undefined) return [{ path: named, place: 'ONESIDED_ADDON' }];
  const cache = cachedAddon();
  const cached = cache === undefined ? [] : [{ path: cache, place: 'the output of "onesided build"', own: true }];
  if (bundled()) return [{ path: join(moduleFolder(), FILE), place: 'beside the bundle' }, ...cached];
  const top = packageFolder();
  const clone = { path: join(top, 'build', 'native', 'Release', FILE), place: "the clone's own build" };
  const prebuilt = { path: join(top, 'prebuilds', addonTarget(), FILE), place: 'the prebuilt addon' };
  // An installed package does not name a folder that its user does not expect there.
  return existsSync(clone.path) ? [clone, ...cached, prebuilt] : [...cached, prebuilt];
}

/** Looks for the addon and loads it. Never throws: it says why there is none. */
export function findAddon(): AddonFound {
  if (process.env['ONESIDED_NO_ADDON'] === '1') return absent('disabled by ONESIDED_NO_ADDON=1');
  if (process.platform !== 'linux') return absent(`it needs Linux, and this is ${process.platform}`);
  const attempts: AddonAttempt[] = [];
  for (const { path, place, own } of candidates()) {
    const { addon, failure } = load(path, own === true);
    if (failure === undefined) return { addon, path, attempts: [...attempts, { path, place }] };
    attempts.push({ path, place, failure });
  }
  const tried = attempts.map(({ path, failure }) => `${path}: ${failure}`).join('; ');
  return { reason: `${missing()}; tried ${tried}`, attempts };
}

function absent(reason: string): AddonFound {
  return { reason, attempts: [] };
}

/** The first half of a sentence: what is missing, in general. */
function missing(): string {
  if (namedAddon() !== undefined) return 'the file that ONESIDED_ADDON names does not load';
  if (bundled()) {
    const prebuilt = `node_modules/onesided/prebuilds/${addonTarget()}/${FILE}`;
    return `a bundle loads the addon from its own folder or from ONESIDED_ADDON; copy it from ${prebuilt}`;
  }
  if (cLibrary() === 'musl') return 'the prebuilt addons need glibc, but this Node uses musl';
  return `found no addon for ${addonTarget()} that loads`;
}

function load(path: string, own: boolean): { readonly addon?: unknown; readonly failure?: string } {
  try {
    const owner = statSync(path, { throwIfNoEntry: false })?.uid;
    if (owner === undefined) return { failure: 'no such file' };
    if (own && owner !== 0 && owner !== process.geteuid!()) return { failure: `it belongs to another user (${owner})` };
    const addon = createRequire(path)(path) as { readonly version?: string };
    if (addon.version === VERSION) return { addon };
    return {
      failure:
        'it belongs to ' +
        `${addon.version === undefined ? 'an unknown version of onesided' : `onesided ${addon.version}`}, ` +
        `but this is onesided ${VERSION}`,
    };
  } catch (error) {
    // The dynamic loader's message begins with the path.
    return { failure: (error as Error).message.replace(`${path}: `, '').split('\n')[0] };
  }
}
