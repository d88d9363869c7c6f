/**
 * The stacks of errors, from the line of the program on.
 *
 * An error is made deep in the library. The frames above the program's call say nothing to its author, and Node prints
 * the source line of the first frame: one of the bundle. `Error.captureStackTrace(error, call)` leaves out what is
 * above a function, but V8 does not tell which functions are on the stack, only their names. So the public calls are
 * known here by name. When an error is made, its frames tell the name of the call by which the program came into the
 * library, and the stack is taken again from there. A call that succeeds costs nothing.
 */
import { sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundled, moduleFolder } from './place.ts';

type Callable = (...args: never) => unknown;
/** A function, or a class, of whatever constructor. */
interface Public {
  readonly name: string;
  readonly prototype?: unknown;
}

const given: Public[] = [];
let known: Map<string, Callable[]> | undefined;

/** Tells the public calls: functions, and classes with their methods. */
export function publicCalls(...calls: readonly Public[]): void {
  given.push(...calls);
  known = undefined;
}

/** Frames that are looked at: the library's above the program's. */
const MOST_FRAMES = 40;

/** Lets the stack of a new error begin at the program's line, if that is among its frames. */
export function beginAtProgram<E extends Error>(error: E): E {
  const names = publicCallsOnStack();
  if (names.length === 0) return error;
  const limit = Error.stackTraceLimit;
  // Several classes have a call of that name. One that is not on the stack leaves no frame at all; below one that
  // another one has called, as an epoch's call does its window's, there is a frame of the library.
  const own = ownPrefixes();
  let begun: string | undefined;
  for (const call of names.flatMap(callsNamed)) {
    const probe: { stack?: unknown } = {};
    Error.stackTraceLimit = 1;
    Error.captureStackTrace(probe, call);
    const { stack } = probe;
    Error.stackTraceLimit = limit;
    if (typeof stack !== 'string' || !FRAME.test(stack) || own.some((prefix) => stack.includes(prefix))) continue;
    Error.captureStackTrace(error, call);
    begun = call.name;
    break;
  }
  // Reading a stack formats it, after which Node prints no source line: so this is not done where it begins well
  // already.
  if (begun === undefined || begun.replace(ACCESSOR, '') !== names[0]) cutLeadingFrames(error);
  return error;
}

/** Where the program has called, for messages about the call that come later: `, called at FILE:LINE:COLUMN`. */
export function programLine(): string {
  const { stack } = beginAtProgram(new Error());
  const own = ownPrefixes();
  const frames = typeof stack === 'string' ? stack.split('\n').slice(1) : [];
  const frame = frames.find((line) => /^ {4}at /.test(line) && !own.some((prefix) => line.includes(prefix)));
  if (frame === undefined) return '';
  return `, called at ${/\(([^()]+)\)$/.exec(frame)?.[1] ?? frame.trim().slice('at '.length)}`;
}

const ACCESSOR = /^(get|set|async|static) /;
const FRAME = /\n {4}at /;
/** Functions of V8 and of Node: a timer, say, in which the library was told that a wait has failed. */
const NOT_A_FILE = /\((<anonymous>\)|node:)|at node:/;

/**
 * Takes away what is left above the program's line: private functions that a call's promise comes from, which V8 does
 * not let us name, and what of Node has called them.
 */
function cutLeadingFrames(error: Error): void {
  const { stack } = error;
  if (typeof stack !== 'string') return;
  const begin = stack.search(FRAME);
  if (begin < 0) return;
  const lines = stack.slice(begin + 1).split('\n');
  const own = ownPrefixes();
  const first = lines.findIndex((line) => !own.some((prefix) => line.includes(prefix)) && !NOT_A_FILE.test(line));
  if (first > 0) error.stack = `${stack.slice(0, begin)}\n${lines.slice(first).join('\n')}`;
}

/** Whether the stack of an error begins at a line of a program. */
export function showsProgram({ stack }: Error): boolean {
  const frame = typeof stack === 'string' ? stack.split('\n').find((line) => /^ {4}at /.test(line)) : undefined;
  return frame !== undefined && !NOT_A_FILE.test(frame) && !ownPrefixes().some((prefix) => frame.includes(prefix));
}

/** How the library's files are named in stacks: as paths, and as URLs. */
function ownPrefixes(): readonly [string, string] {
  const folder = moduleFolder();
  return [`${folder}${sep}`, `${pathToFileURL(folder).href}/`];
}

/** The names of the library's functions on top of the stack, the one that the program has called first. */
function publicCallsOnStack(): string[] {
  if (bundled()) return [];
  const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  const limit = Error.stackTraceLimit;
  // Frozen intrinsics: the error stays as it is.
  if (before !== undefined ? !before.writable : !Object.isExtensible(Error)) return [];
  // A program that wants no frames gets none.
  if (typeof limit !== 'number' || limit < 1) return [];
  const probe: { stack?: NodeJS.CallSite[] } = {};
  let frames: NodeJS.CallSite[] | undefined;
  Error.stackTraceLimit = MOST_FRAMES;
  Error.prepareStackTrace = (_, sites) => sites;
  try {
    Error.captureStackTrace(probe, beginAtProgram);
    frames = probe.stack;
  } finally {
    Error.stackTraceLimit = limit;
    if (before === undefined) delete (Error as { prepareStackTrace?: unknown }).prepareStackTrace;
    else Object.defineProperty(Error, 'prepareStackTrace', before);
  }
  return Array.isArray(frames) ? namesIn(frames) : [];
}

function namesIn(frames: readonly NodeJS.CallSite[]): string[] {
  const own = ownPrefixes();
  const names: string[] = [];
  for (const frame of frames) {
    const file = frame.getFileName();
    // What V8 and Node have between two frames of the library, as of `Array.prototype.map`.
    if (typeof file !== 'string' || file.startsWith('node:')) continue;
    if (!own.some((prefix) => file.startsWith(prefix))) return names;
    names.unshift((frame.getFunctionName() ?? '').replace(ACCESSOR, '').replace(/^.*\.(?!\])/, ''));
  }
  // No line of the program: the error was made where all waits are served (wait/caller.ts), or by another thread.
  return [];
}

function callsNamed(name: string): readonly Callable[] {
  known ??= collected();
  return known.get(name) ?? [];
}

function collected(): Map<string, Callable[]> {
  const all = new Map<string, Callable[]>();
  const add = (name: string, call: unknown): void => {
    if (typeof call !== 'function') return;
    const same = all.get(name) ?? [];
    if (!same.includes(call as Callable)) all.set(name, [...same, call as Callable]);
  };
  for (const call of given) {
    add(call.name, call);
    for (let at: object | null = call; at !== null && at !== Function.prototype; at = Object.getPrototypeOf(at))
      addMembers(at, add);
    for (let at = (call.prototype ?? null) as object | null; at !== null && at !== Object.prototype; )
      at = addMembers(at, add);
  }
  return all;
}

/** @returns its prototype */
function addMembers(of: object, add: (name: string, call: unknown) => void): object | null {
  for (const key of Reflect.ownKeys(of)) {
    if (key === 'constructor' || key === 'prototype') continue;
    const name = typeof key === 'symbol' ? `[${key.description}]` : key;
    const { value, get, set } = Object.getOwnPropertyDescriptor(of, key)!;
    for (const call of [value, get, set]) add(name, call);
  }
  return Object.getPrototypeOf(of);
}
