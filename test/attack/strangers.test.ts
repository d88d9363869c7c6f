/**
 * Strangers at the port where ranks meet: while rank 0 waits for the others, they say nothing, too much, half of what
 * is right, or the right things without the secret. `ONESIDED_ATTACK_STRANGERS=N` for that many; a seed draws what they
 * do.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { clientOptions } from '../../src/start/secure.ts';
import { Random } from '../ranks/support/random.ts';
import { endMembers, follow, type Member, PROGRAM } from '../robustness/members.ts';
import { freePort } from '../support/ports.ts';
import { seedOfRun } from '../support/ranks.ts';

const COUNT = Number(process.env['ONESIDED_ATTACK_STRANGERS'] ?? 200);
const SECRET = 'correct horse battery staple';
/** Strangers that knock at a time. */
const TOGETHER = 50;

afterEach(endMembers);

function rankOf(port: number, rank: number): Member {
  const child = spawn(process.execPath, [PROGRAM, '--how=work'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      ONESIDED_RANK: String(rank),
      ONESIDED_SIZE: '3',
      ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
      ONESIDED_SECRET: SECRET,
    },
  });
  return follow(child);
}

/** Resolves when the stranger has done what it does, to the bytes that it was told. */
function knock(port: number, random: Random): Promise<number> {
  let heard = 0;
  const greetings = [
    '',
    'GET / HTTP/1.1\r\n\r\n',
    '{"rank":1,"size":3,"card":"x"}\n',
    '\x16\x03\x01',
    '\x16\x03\x03\xff\xff'.padEnd(70_000, 'x'),
    Array.from({ length: random.below(3000) }, () => String.fromCharCode(random.below(256))).join(''),
  ];
  const greeting = random.pick(greetings);
  const how = random.pick(['end', 'reset', 'stay']);
  return new Promise((resolve) => {
    const done = (): void => resolve(heard);
    const act = (socket: Socket): void => {
      socket.on('data', (bytes: Buffer) => (heard += bytes.length));
      socket.write(greeting, 'latin1');
      if (how === 'end') socket.end();
      if (how === 'reset') setTimeout(() => socket.resetAndDestroy(), random.below(20));
      // Whoever stays is a while there, and goes.
      setTimeout(() => socket.destroy(), how === 'stay' ? 200 : 2000).unref();
    };
    if (random.chance(0.3)) {
      const psk = { psk: Buffer.alloc(32, random.below(256)), identity: random.pick(['', 'onesided', '1']) };
      const right = clientOptions('127.0.0.1', port, 'not the secret of this job');
      const options = random.chance(0.5) ? right : { ...right, pskCallback: () => psk };
      const secure = connectSecurely(options);
      secure.on('error', done).on('close', done);
      secure.on('secureConnect', () => {
        heard = Number.POSITIVE_INFINITY;
        secure.destroy();
      });
    } else {
      const socket = connect(port, '127.0.0.1');
      socket
        .on('error', done)
        .on('close', done)
        .on('connect', () => act(socket));
    }
  });
}

/** Resolves when somebody listens there. */
async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const open = await new Promise<boolean>((resolve) => {
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await sleep(50);
  }
}

function resident(pid: number): number {
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]);
}

describe.skipIf(loadNative() === undefined)('strangers at the port where ranks meet', () => {
  it('are not let in, told nothing, and leave nothing behind', { timeout: 180_000 + 100 * COUNT }, async () => {
    const seed = seedOfRun();
    const port = await freePort();
    const zero = rankOf(port, 0);
    const pid = zero.child.pid!;
    const one = rankOf(port, 1);
    await listening(port);
    const round = async (first: number, count: number): Promise<number[]> =>
      Promise.all(Array.from({ length: count }, (_, i) => knock(port, new Random(seed, first + i))));
    const descriptors = (): number => readdirSync(`/proc/${pid}/fd`).length;
    // What a server keeps after the first hundred is not a leak.
    const told = [...(await round(0, TOGETHER)), ...(await round(TOGETHER, TOGETHER))];
    const before = { memory: resident(pid), descriptors: descriptors() };
    for (let i = 2 * TOGETHER; i < COUNT; i += TOGETHER) told.push(...(await round(i, TOGETHER)));
    // At most an alert of TLS.
    expect(Math.max(...told)).toBeLessThan(20);
    while (descriptors() > before.descriptors + 2) await sleep(50);
    expect(resident(pid) - before.memory).toBeLessThan(60_000);
    const members = [zero, one, rankOf(port, 2)];
    await Promise.all(members.map(({ said }) => said('done')));
    for (const { code } of await Promise.all(members.map(({ ended }) => ended))) expect(code).toBe(0);
  });

  it('cannot read what they record, even if they learn the secret later', { timeout: 120_000 }, async () => {
    const port = await freePort();
    rankOf(port, 0);
    await listening(port);
    const socket = connectSecurely(clientOptions('127.0.0.1', port, SECRET));
    await once(socket, 'secureConnect');
    expect(socket.getEphemeralKeyInfo()).toMatchObject({ type: 'ECDH' });
    expect(socket.getCipher().name).toMatch(/^ECDHE-PSK-/);
    socket.destroy();
  });
});
