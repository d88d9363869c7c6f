/**
 * A rank that does what its arguments say, for the launcher's tests. It does not use the library.
 *
 * Each argument is `WHO:STEP` or `WHO:STEP=VALUE`; WHO is a rank or `*`, or a mere text, which marks the process. Words
 * of the control memory are given by their number, so that only the tests know its layout.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';

const rank = Number(process.env['ONESIDED_RANK']);
const shared = (workerData as { onesided?: { control: SharedArrayBuffer } } | null)?.onesided?.control;
const words = shared === undefined ? undefined : new Int32Array(shared);
const fd = Number(process.env['ONESIDED_CONTROL_FD']);

function load(word: number): number {
  if (words !== undefined) return Atomics.load(words, word);
  const value = new Int32Array(1);
  readSync(fd, value, 0, 4, 4 * word);
  return value[0];
}

function store(word: number, value: number): void {
  if (words !== undefined) Atomics.store(words, word, value);
  else writeSync(fd, Int32Array.of(value), 0, 4, 4 * word);
}

const STEPS: Record<string, (value: string) => unknown> = {
  print: (text) => console.log(text),
  complain: (text) => console.error(text),
  write: (text) => process.stdout.write(text),
  lines: (count) => {
    for (let i = 0; i < Number(count); i++) console.log(`line ${i} of rank ${rank}: ${'x'.repeat(i % 200)}`);
  },
  // Without end, and no faster than it is read.
  stream: async () => {
    for (;;) if (!process.stdout.write('more\n')) await once(process.stdout, 'drain');
  },
  env: (name) => console.log(`${name}=${process.env[name]}`),
  argv: () => console.log(JSON.stringify(process.argv.slice(2))),
  stdin: async () => {
    for await (const chunk of process.stdin) process.stdout.write(chunk as Buffer);
  },
  sleep: (milliseconds) => sleep(Number(milliseconds)),
  spin: () => {
    for (;;);
  },
  exit: (code) => process.exit(Number(code)),
  throw: (message) => {
    throw new Error(message);
  },
  kill: (signal) => process.kill(process.pid, signal),
  catch: (signal) => process.on(signal as NodeJS.Signals, () => console.log(`caught ${signal}`)),
  'exit-on': (signal) => process.on(signal as NodeJS.Signals, () => process.exit(0)),
  // Leaves a process behind that bears this one's arguments.
  leave: () =>
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', ...process.argv.slice(2)], {
      stdio: 'inherit',
    }).unref(),
  // The same in a session of its own, with this variable removed from its environment.
  'leave-detached': (variable) => {
    const { [variable]: _, ...env } = process.env;
    const args = ['-e', 'setInterval(() => {}, 1000)', ...process.argv.slice(2)];
    spawn(process.execPath, args, { detached: true, stdio: 'ignore', env }).unref();
  },
  environment: () => console.log(JSON.stringify(process.env)),
  store: (assignment) => {
    const [word, value] = assignment.split('/').map(Number);
    store(word, value);
  },
  until: async (word) => {
    while (load(Number(word)) === 0) await sleep(5);
  },
};

for (const argument of process.argv.slice(2)) {
  const [, who, step, value] = /^(\*|\d+):([a-z-]+)(?:=(.*))?$/s.exec(argument) ?? [];
  if (who === '*' || Number(who) === rank) await STEPS[step](value ?? '');
}
