/**
 * Ranks that find each other through a process manager, here one of the test's own, which can be wrong in every way;
 * and through an address.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { endMembers, failuresOf, follow, type Member, PROGRAM } from '../robustness/members.ts';
import { Pmi, type Tamper } from '../support/pmi.ts';
import { freePort } from '../support/ports.ts';

afterEach(endMembers);

const SECRET = 'correct horse battery staple';

function start(
  environment: Record<string, string>,
  how = 'work',
  timeout = 0,
  errors: 'inherit' | 'pipe' = 'inherit',
): { member: Member; child: ChildProcess } {
  const child = spawn(process.execPath, [PROGRAM, `--how=${how}`, `--timeout=${timeout}`], {
    stdio: ['ignore', 'pipe', errors, 'pipe'],
    env: { ...process.env, ...environment },
  });
  return { member: follow(child), child };
}

function environmentOf(port: number, rank: number | string, size: number | string, secret = SECRET) {
  return {
    ONESIDED_RANK: String(rank),
    ONESIDED_SIZE: String(size),
    ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
    ONESIDED_SECRET: secret,
  };
}

async function expectWork(members: readonly Member[]): Promise<void> {
  await Promise.all(members.map(({ said }) => said('done')));
  const all = members.map(({ lines }) => lines.find(({ rank }) => rank !== undefined)!);
  expect(all.map(({ rank }) => rank).sort()).toEqual(members.map((_, rank) => rank));
  expect(all.map(({ size }) => size)).toEqual(members.map(() => members.length));
  expect(await Promise.all(members.map(({ ended }) => ended))).toEqual(members.map(() => ({ code: 0, signal: null })));
}

/** Ranks that a manager has started. */
function managed(size: number, version: 1 | 2, tamper?: Tamper, timeout = 0) {
  const manager = new Pmi(size, version, (environment) => start(environment, 'work', timeout), tamper);
  return { manager, members: manager.started.map(({ member }) => member) };
}

/** The answer with its card changed. */
function doctor(answer: string, change: (card: Record<string, unknown>) => void): string {
  return answer.replace(/value=([\w-]+)/, (_, text: string) => {
    const card = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>;
    change(card);
    return `value=${Buffer.from(JSON.stringify(card)).toString('base64url')}`;
  });
}

describe.skipIf(loadNative() === undefined)('a rank and its process manager', () => {
  it.each([1, 2] as const)('meet by PMI-%i', async (version) => {
    const { manager, members } = managed(3, version);
    await expectWork(members);
    expect(manager.requests.filter((request) => request.includes('finalize'))).toHaveLength(3);
  });

  const canUnshare = spawnSync('unshare', ['--net', 'true']).status === 0;
  it.skipIf(!canUnshare)('are on different hosts where they have networks of their own', async () => {
    let started = 0;
    const { started: ranks } = new Pmi(2, 1, (environment) => {
      const command = [process.execPath, PROGRAM, '--how=work'];
      const [name, ...args] = started++ === 0 ? command : ['unshare', '--net', ...command];
      const child = spawn(name, args, {
        stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
        env: { ...process.env, ...environment },
      });
      return { member: follow(child), child };
    });
    for (const { code, message } of await failuresOf(ranks.map(({ member }) => member))) {
      expect(code).toBe('ERR_PROVIDER_UNAVAILABLE');
      expect(message).toMatch(/do not share a host, its network, a PID namespace and a user/);
    }
  });

  const WRONG: [string, string, RegExp, Tamper][] = [
    ['ends the connection', 'ERR_COMM', /closed the connection/, (a, r) => (/barrier|fence/.test(r) ? undefined : a)],
    ['refuses', 'ERR_COMM', /rc=-1/, (a, r) => (/put/.test(r) ? a.replace('rc=0', 'rc=-1') : a)],
    [
      'talks of something else',
      'ERR_COMM',
      /expected [\w-]+ with rc=0/,
      (a, r) => (/put/.test(r) ? 'cmd=singinit rc=0;' : a),
    ],
    [
      'talks without end',
      'ERR_COMM',
      /not valid PMI|expected [\w-]+ with rc=0/,
      (a, r) => (/put/.test(r) ? `99999${'x'.repeat(200_000)}` : a),
    ],
    [
      'talks binary',
      'ERR_COMM',
      /not valid PMI|expected [\w-]+ with rc=0/,
      (a, r) => (/put/.test(r) ? '\0\xff\n\n\n\n' : a),
    ],
    [
      'has no card of a rank',
      'ERR_COMM',
      /does not run onesided|does not come from onesided/,
      (a, r) => (/get.*-0/.test(r) ? a.replace(/value=\w+/, '') : a),
    ],
    [
      'has something else of a rank',
      'ERR_COMM',
      /does not come from onesided/,
      (a, r) => (/get.*-0/.test(r) ? a.replace(/value=\w+/, 'value=42') : a),
    ],
    [
      'knows ranks of another version',
      'ERR_VERSION',
      /rank 0 runs onesided 9\.9\.9, but rank 1 runs \d/,
      (a, r) => (/get.*-0/.test(r) ? doctor(a, (card) => (card['version'] = '9.9.9')) : a),
    ],
    [
      'knows ranks of another host',
      'ERR_PROVIDER_UNAVAILABLE',
      /rank 0 \(on far\) and rank 1/,
      (a, r) => (/get.*-0/.test(r) ? doctor(a, (card) => Object.assign(card, { place: 'far', host: 'far' })) : a),
    ],
    [
      'knows a rank that is gone',
      'ERR_COMM',
      /is gone/,
      (a, r) => (/get.*-0/.test(r) ? doctor(a, (card) => (card['pid'] = 999_999_999)) : a),
    ],
    [
      'knows another file of a rank',
      'ERR_COMM',
      /is not, or is no longer, the control memory/,
      (a, r) => (/get.*-0/.test(r) ? doctor(a, (card) => (card['fd'] = 0)) : a),
    ],
  ];
  const cases = WRONG.flatMap(([what, code, message, tamper]) =>
    ([1, 2] as const).map((version) => ({ what, code, message, tamper, version })),
  );
  it.each(cases)('that $what, by PMI-$version: $code', async ({ code, message, tamper, version }) => {
    // Rank 0 would wait for the others, who have failed.
    const { members } = managed(2, version, tamper, 20_000);
    const [failure] = await failuresOf(members.slice(1));
    expect(failure.message).toMatch(message);
    expect(failure.code).toBe(code);
  });

  it('that never lets them meet: a timeout', async () => {
    const { members } = managed(1, 1, (answer, request) => (/barrier/.test(request) ? '' : answer), 300);
    const [failure] = await failuresOf(members);
    expect(failure.code).toMatch(/ERR_RMA_TIMEOUT|ERR_COMM/);
  });

  it.each([
    [{ PMI_FD: '3', PMI_RANK: '2', PMI_SIZE: '2' }, /PMI_RANK=2 and PMI_SIZE=2/],
    [{ PMI_FD: '3', PMI_RANK: '0' }, /PMI_RANK=0 and PMI_SIZE=undefined/],
    [{ PMI_FD: '1000', PMI_RANK: '0', PMI_SIZE: '2' }, /PMI_FD=1000 is not, or is no longer, a connection/],
    [{ PMI_FD: 'x', PMI_RANK: '0', PMI_SIZE: '2' }, /PMI_FD=x is not, or is no longer, a connection/],
    [{ PMIX_NAMESPACE: 'none' }, /PMIx|libpmix/],
    [{ ONESIDED_SIZE: '2' }, /ONESIDED_ROOT_ADDRESS .* is not; set it/],
  ])('with %o in the environment: an error that says what is wrong', async (environment, message) => {
    const [failure] = await failuresOf([start(environment as Record<string, string>).member]);
    expect(failure.message).toMatch(message);
    expect(failure.code).toBe('ERR_COMM');
  });
});

describe.skipIf(loadNative() === undefined)('ranks that were told an address', () => {
  function rankOf(
    port: number,
    rank: number | string,
    size: number | string,
    how = 'work',
    secret = SECRET,
    timeout = 0,
  ) {
    return start(environmentOf(port, rank, size, secret), how, timeout).member;
  }

  /** As PyTorch's launchers say it. */
  function torch(port: number, rank: number, size: number, more: Record<string, string> = {}): Record<string, string> {
    const names = { RANK: String(rank), WORLD_SIZE: String(size), MASTER_ADDR: '127.0.0.1', MASTER_PORT: String(port) };
    return { ...names, ONESIDED_SECRET: SECRET, ...more };
  }

  it('meet by the variables of PyTorch’s launchers, also where MASTER_PORT is theirs', async () => {
    const port = await freePort();
    await expectWork([1, 0, 2].map((rank) => start(torch(port, rank, 3)).member));
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const store = { TORCHELASTIC_USE_AGENT_STORE: 'True' };
    const { port: theirs } = taken.address() as { port: number };
    await expectWork([0, 1].map((rank) => start(torch(theirs, rank, 2, store)).member));
    taken.close();
  });

  it('are not alone where those variables tell of others, but no secret', async () => {
    const ranks = [0, 1].map((rank) => start({ ...torch(7, rank, 2), ONESIDED_SECRET: '' }).member);
    for (const { code, message } of await failuresOf(ranks)) {
      expect(code).toBe('ERR_COMM');
      expect(message).toMatch(/^init: MASTER_ADDR:MASTER_PORT needs ONESIDED_SECRET/);
    }
    const { RANK: _, ...half } = torch(7, 0, 2);
    const [{ code, message }] = await failuresOf([start(half).member]);
    expect(code).toBe('ERR_COMM');
    expect(message).toMatch(
      /^init: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and ONESIDED_SECRET are set, but RANK is not; set all/,
    );
    const wrong = await failuresOf([
      start(torch(7, 5, 2)).member,
      start({ ...torch(7, 0, 2), MASTER_PORT: 'x' }).member,
    ]);
    expect(wrong[0].message).toMatch(
      /^init: RANK=5 and WORLD_SIZE=2 are not the rank and the size of a job; MASTER_ADD/,
    );
    expect(wrong[1].message).toMatch(/MASTER_ADDR:MASTER_PORT must be host:port, not "127.0.0.1:x"/);
    await expectWork([start({ ...torch(7, 0, 1), ONESIDED_SECRET: '' }).member]);
  });

  it.each([[[0, 1, 2, 3]], [[3, 1, 2, 0]], [[0]]])('meet, started in the order %o', async (order) => {
    const port = await freePort();
    const members: Member[] = [];
    for (const rank of order) {
      members.push(rankOf(port, rank, order.length));
      await sleep(100);
    }
    await expectWork(members);
  });

  it('leave nothing in the environment for the programs that they start', async () => {
    const member = rankOf(await freePort(), 0, 1);
    expect((await member.said('rank')).inherited).toEqual([]);
    await expectWork([member]);
  });

  it('let strangers wait outside, who cannot keep them from meeting or ending', async () => {
    const port = await freePort();
    const members = [rankOf(port, 0, 2)];
    const strangers: Socket[] = [];
    const knock = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => setTimeout(() => resolve(knock(text)), 20));
        socket.on('connect', () => {
          socket.removeAllListeners('error').on('error', () => {});
          strangers.push(socket);
          if (text !== '') socket.write(text);
          resolve();
        });
      });
    await Promise.all(
      ['', '', 'GET / HTTP/1.1\r\n\r\n', '{"rank":1,"size":2,"card":"x"}\n', '\x16\x03\x01\xff'].map(knock),
    );
    const heard = strangers.map((socket) => {
      const bytes: Buffer[] = [];
      socket.on('data', (piece: Buffer) => bytes.push(piece));
      return bytes;
    });
    const [failure] = await failuresOf([rankOf(port, 1, 2, 'work', 'another secret of some length')]);
    expect(failure.message).toMatch(/does not know this job's ONESIDED_SECRET/);
    members.push(rankOf(port, 1, 2));
    await expectWork(members);
    // At most an alert of TLS.
    for (const bytes of heard) expect(Buffer.concat(bytes).length).toBeLessThan(20);
    for (const socket of strangers) socket.destroy();
  });

  /** Of several processes that are the same rank, the one that is turned away, and the one that is not. */
  async function turnedAway(members: readonly Member[]): Promise<{ message: string; other: Member }> {
    const first = members.map((member, i) => member.said('code').then(({ message }) => ({ message: message!, i })));
    const { message, i } = await Promise.race(first);
    return { message, other: members[1 - i] };
  }

  it('turn away a rank that has come already, does not exist, or thinks of another size', async () => {
    const port = await freePort();
    const zero = rankOf(port, 0, 3);
    const { message, other: one } = await turnedAway([rankOf(port, 1, 3), rankOf(port, 1, 3)]);
    expect(message).toMatch(/rank 1 has already joined/);
    const [stranger] = await failuresOf([rankOf(port, 2, 4)]);
    expect(stranger.message).toMatch(/ONESIDED_SIZE=4, but rank 0 has ONESIDED_SIZE=3/);
    await expectWork([zero, one, rankOf(port, 2, 3)]);
  });

  it('are told when one of them leaves before all have come', async () => {
    const port = await freePort();
    const zero = rankOf(port, 0, 4);
    const { other: one } = await turnedAway([rankOf(port, 1, 4), rankOf(port, 1, 4)]);
    const { other: two } = await turnedAway([rankOf(port, 2, 4), rankOf(port, 2, 4)]);
    two.child.kill('SIGKILL');
    for (const failure of await failuresOf([zero, one]))
      expect(failure.message).toMatch(/rank 2 disconnected before all 4 ranks had joined/);
  });

  it('say after ten seconds who has not come, or what was refused, and again when their time is up', async () => {
    const port = await freePort();
    // It takes connections, and ends them before it has said anything.
    const gateway = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    const late = (at: number, rank: number, size: number, timeout = 13_000) =>
      start(environmentOf(at, rank, size), 'work', timeout, 'pipe');
    const nobody = await freePort();
    const cases: { member: Member; child: ChildProcess; words: RegExp; told?: RegExp }[] = [
      { ...late(port, 0, 4), words: /ranks 2, 3 have not connected$/ },
      {
        // Rank 0 gives up before it does.
        ...late(port, 1, 4, 60_000),
        words: /rank 0 waits for others, and says which$/,
        told: /ranks 2, 3 have not connected$|ended before all ranks had joined$/,
      },
      { ...late(nobody, 1, 2), words: /no connection with 127.0.0.1:\d+ \(ECONNREFUSED\)$/ },
      {
        ...late((gateway.address() as { port: number }).port, 1, 2),
        words: /accepts connections and ends them before they are secure \((ECONNRESET|closed)\)$/,
      },
    ];
    await Promise.all(
      cases.map(async ({ member, child, words, told }) => {
        let said = '';
        child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
        const [failure] = await failuresOf([member]);
        expect(failure.code).toBe(told === undefined ? 'ERR_RMA_TIMEOUT' : 'ERR_COMM');
        expect(failure.message).toMatch(told ?? words);
        const lines = said.split('\n').filter((line) => line.startsWith('onesided: init has waited for 10 s: '));
        expect(lines).toHaveLength(1);
        expect(lines[0]).toMatch(words);
      }),
    );
    gateway.close();
  });

  it('wait no longer than they may', async () => {
    const port = await freePort();
    for (const rank of [0, 1]) {
      const [failure] = await failuresOf([rankOf(port, rank, 2, 'work', SECRET, 300)]);
      expect(failure.code).toBe('ERR_RMA_TIMEOUT');
      expect(failure.message).toMatch(
        rank === 0 ? /through port \d+ within 300 ms/ : /through rank 0 at 127.0.0.1:\d+ within 300 ms/,
      );
    }
  });

  it('learn when one of them is killed', async () => {
    const port = await freePort();
    const members = [0, 1, 2].map((rank) => rankOf(port, rank, 3, 'loop'));
    await Promise.all(members.map(({ said }) => said('working')));
    members[1].child.kill('SIGKILL');
    for (const failure of await failuresOf([members[0], members[2]])) {
      expect(failure.code).toBe('ERR_RMA_RANK_FAILED');
      expect(failure.message).toContain('rank 1 ');
    }
  });

  it.each([
    [{ ONESIDED_ROOT_ADDRESS: 'nowhere' }, /host:port, not "nowhere"/],
    [{ ONESIDED_ROOT_ADDRESS: 'host:99999' }, /host:port/],
    [{ ONESIDED_SECRET: 'short' }, /at least 16 characters/],
    [{ ONESIDED_RANK: '2' }, /ONESIDED_RANK=2 and ONESIDED_SIZE=2/],
    [{ ONESIDED_RANK: '-1' }, /are not the rank and the size of a job/],
  ])('with %o: an error that says what is wrong', async (wrong, message) => {
    const right = {
      ONESIDED_RANK: '0',
      ONESIDED_SIZE: '2',
      ONESIDED_ROOT_ADDRESS: '127.0.0.1:1',
      ONESIDED_SECRET: SECRET,
    };
    const [failure] = await failuresOf([start({ ...right, ...wrong } as Record<string, string>).member]);
    expect(failure.message).toMatch(message);
    expect(failure.code).toBe('ERR_COMM');
  });
});
