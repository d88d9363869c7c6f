/** Members for tests: services that this process joins, and processes that do. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { Service } from '../../src/service/service.ts';

export const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-member.js', import.meta.url));

const joined: Service[] = [];
const children: ChildProcess[] = [];

/** In each file that uses the rest. */
export function endMembersAfterEach(): void {
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const service of joined.splice(0)) await service.leave();
  });
}

export const fresh = (): string => `test-${randomUUID()}`;

export async function join(name: string, places?: number): Promise<Service> {
  const service = await Service.join(name, places === undefined ? undefined : { places });
  joined.push(service);
  return service;
}

/** A process that joins, does something, and says so. */
export async function member(name: string, does: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [PROGRAM, name, does], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  while (!out.includes('ready')) await once(child.stdout, 'data');
  return child;
}

/** @param signal ends the process; it is gone afterwards */
export async function killed(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  child.kill(signal);
  await once(child, 'exit');
}
