/** Jobs that unrelated processes join by name: nobody watches them but themselves. */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { leftWith, marker } from '../launcher/command.ts';
import { Random } from '../ranks/support/random.ts';
import { IN_GATE } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';
import { endMembers, failuresOf, follow, type Member, PROGRAM } from './members.ts';

const mark = marker();

let runtime: string;

beforeEach(() => {
  runtime = mkdtempSync(join(tmpdir(), 'onesided-test-'));
});
afterEach(() => {
  endMembers();
  rmSync(runtime, { recursive: true, force: true });
});
afterAll(async () => {
  expect(await leftWith(mark)).toEqual([]);
});

function folder(): string {
  return join(runtime, `onesided-${userInfo().uid}`);
}

function notices(): string[] {
  return existsSync(folder()) ? readdirSync(folder()) : [];
}

function member(job: string, size: number | string, how = 'work', timeout = 0, errors?: 'pipe'): Member {
  const args = [PROGRAM, `--job=${job}`, `--size=${size}`, `--how=${how}`, `--timeout=${timeout}`, mark];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', errors ?? 'inherit'],
    env: { ...process.env, XDG_RUNTIME_DIR: runtime },
  });
  return follow(child);
}

/** A notice is written under another name first. */
async function untilNotice(): Promise<void> {
  while (!notices().some((name) => name.endsWith('.job'))) await sleep(5);
}

describe.skipIf(loadNative() === undefined)('the name of a job', () => {
  it('brings processes together, of which each says after ten seconds who has not come', async () => {
    const members = [0, 1].map(() => member('lonely', 4, 'work', 13_000, 'pipe'));
    const said = members.map(({ child }) => {
      const lines: string[] = [];
      child.stderr!.setEncoding('utf8').on('data', (text: string) => lines.push(text));
      return lines;
    });
    for (const { code, message } of await failuresOf(members)) {
      // The second one is told that the first has given up, or its own time is up before.
      expect(code).toMatch(/^ERR_RMA_TIMEOUT$|^ERR_RMA_RANK_FAILED$/);
      if (code === 'ERR_RMA_TIMEOUT') expect(message).toMatch(/waiting for ranks 2, 3 to call it/);
    }
    const words = 'onesided: init has waited for 10 s: 2 of 4 ranks have come, ranks 2, 3 not yet\n';
    for (const lines of said) expect(lines.join('')).toBe(words);
  });

  it('is taken while a member lives, also when its founder was killed', async () => {
    const members = Array.from({ length: 3 }, () => member('taken', 3, 'stay'));
    const ranks = (await Promise.all(members.map(({ said }) => said('rank')))).map(({ rank }) => rank);
    expect([...ranks].sort()).toEqual([0, 1, 2]);
    const taken = { code: 'ERR_COMM', message: expect.stringContaining('the name "taken" is taken') };
    // As many as the job has ranks: enough for a second one. They ask for whatever size.
    for (const line of await failuresOf([3, 3, 3, 1].map((size) => member('taken', size))))
      expect(line).toMatchObject(taken);
    const founder = members[ranks.indexOf(0)];
    founder.child.kill('SIGKILL');
    await founder.ended;
    const [line] = await failuresOf([member('taken', 1)]);
    expect(line).toMatchObject(taken);
    for (const { child } of members) if (child !== founder.child) expect(line.message).toContain(`${child.pid}`);
    for (const { child } of members) child.kill('SIGKILL');
    await Promise.all(members.map(({ ended }) => ended));
    const next = member('taken', 1);
    await next.said('done');
    expect(notices()).toEqual([]);
  });

  it('is free as soon as the job ends, also while its processes live on', async () => {
    const members = [member('ended', 2, 'stay'), member('ended', 2, 'stay')];
    await Promise.all(members.map(({ said }) => said('rank')));
    for (const { child } of members) child.kill('SIGUSR2');
    // At once: the other may still be leaving.
    await Promise.race(members.map(({ said }) => said('done')));
    const next = [member('ended', 2), member('ended', 2)];
    await Promise.all(next.map(({ said }) => said('done')));
    for (const { child } of members) child.kill('SIGUSR2');
    await Promise.all(members.map(({ ended }) => ended));
    expect(notices()).toEqual([]);
  });

  it.skipIf(IN_GATE)(
    'is free when a member was killed before the job was complete: the next process begins anew',
    async () => {
      const founder = member('doomed', 3, 'stay');
      await untilNotice();
      const joiner = member('doomed', 3, 'stay');
      await joiner.said('pid');
      await sleep(300);
      joiner.child.kill('SIGKILL');
      await joiner.ended;
      const next = Array.from({ length: 3 }, () => member('doomed', 3));
      await Promise.all(next.map(({ said }) => said('done')));
      expect(await founder.said('code')).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    },
  );

  it.skipIf(IN_GATE)('stands for one job, however many come for it at the same time', async () => {
    const members = Array.from({ length: 6 }, () => member('crowd', 2, 'stay'));
    const settled = await Promise.all(members.map((one) => Promise.race([one.said('rank'), one.said('code')])));
    expect(
      settled
        .map(({ rank }) => rank)
        .filter((rank) => rank !== undefined)
        .sort(),
    ).toEqual([0, 1]);
    for (const { code, message } of settled)
      if (code !== undefined) expect(message).toContain('the name "crowd" is taken');
  });

  it('can be joined again by processes that have finalized', async () => {
    const members = [member('rejoin', 2, 'rejoin'), member('rejoin', 2, 'rejoin')];
    for (const line of await Promise.all(members.map(({ said }) => said('again')))) expect(line.again).toBe(true);
    await Promise.all(members.map(({ said }) => said('done')));
    await Promise.all(members.map(({ ended }) => ended));
    expect(notices()).toEqual([]);
  });
});

describe.skipIf(loadNative() === undefined || IN_GATE)('a named job', () => {
  it('is joined by processes that start in any order, and leaves no name', async () => {
    const members = [member('meeting', 4), member('meeting', 4)];
    await sleep(150);
    members.push(member('meeting', 4), member('meeting', 4));
    await Promise.all(members.map(({ said }) => said('done')));
    const ranks = members.map(({ lines }) => lines.find(({ rank }) => rank !== undefined)!.rank);
    expect(ranks.sort()).toEqual([0, 1, 2, 3]);
    expect(await Promise.all(members.map(({ ended }) => ended))).toEqual(
      members.map(() => ({ code: 0, signal: null })),
    );
    expect(notices()).toEqual([]);
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
  });

  it('lives beside others', async () => {
    const members = ['a', 'b', 'a', 'b', 'c.d-e_f'].map((job) => member(job, job.length === 1 ? 2 : 1));
    await Promise.all(members.map(({ said }) => said('done')));
    expect(members.map(({ lines }) => lines[1].size)).toEqual([2, 2, 2, 2, 1]);
    expect(notices()).toEqual([]);
  });

  it('can be begun again under the same name', async () => {
    for (let round = 0; round < 2; round++) {
      const members = [member('again', 2), member('again', 2)];
      await Promise.all(members.map(({ said }) => said('done')));
      await Promise.all(members.map(({ ended }) => ended));
    }
  });

  it('whose founder was killed leaves a notice that the next ones remove', async () => {
    const founder = member('stale', 4);
    await untilNotice();
    founder.child.kill('SIGKILL');
    await founder.ended;
    expect(notices()).toEqual(['stale.job']);
    const members = Array.from({ length: 4 }, () => member('stale', 4));
    await Promise.all(members.map(({ said }) => said('done')));
    expect(notices()).toEqual([]);
  });

  it('refuses another size', async () => {
    const founder = member('size', 3);
    await untilNotice();
    const [line] = await failuresOf([member('size', 2)]);
    expect(line).toMatchObject({
      code: 'ERR_SIZE',
      message: expect.stringContaining('was started with 3 ranks, not 2'),
    });
    founder.child.kill('SIGKILL');
    await founder.ended;
  });

  it('takes no more than its size: who comes too late is refused, or waits for a job of its own', async () => {
    const members = Array.from({ length: 3 }, () => member('full', 2, 'work', 1500));
    await Promise.all(members.map(({ ended }) => ended));
    const done = members.filter(({ lines }) => lines.some(({ done }) => done));
    expect(done.length).toBe(2);
    const late = members.find((one) => !done.includes(one))!;
    expect(['ERR_COMM', 'ERR_RMA_TIMEOUT']).toContain((await late.said('code').catch(() => late.lines[1])).code);
    expect(notices()).toEqual([]);
  });

  it('has a name that can be a file, and a size', async () => {
    const names = ['', '../up', 'a/b', 'a b', 'x'.repeat(101), 'ü'];
    for (const line of await failuresOf(names.map((name) => member(name, 2))))
      expect(line).toMatchObject({
        code: 'ERR_ARG',
        message: expect.stringContaining('the name of a job must be 1 to 100 letters'),
      });
    const sizes = ['0', '-1', '1.5', 'NaN', '4097', 'Infinity'];
    for (const line of await failuresOf(sizes.map((size) => member('name', size))))
      expect(line).toMatchObject({ code: 'ERR_SIZE', message: expect.stringContaining('1 to 4096 ranks') });
    expect(readdirSync(runtime)).toEqual([]);
  });

  it('that a member cannot be in, after it has come, ends for all, though that process lives on', async () => {
    const founder = member('misfit', 2);
    await untilNotice();
    const misfit = member('misfit', 2, 'misfit');
    expect(await misfit.said('failed')).toMatchObject({ failed: expect.stringMatching(/^ERR_/) });
    expect(await founder.said('code')).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    misfit.child.kill('SIGKILL');
    await Promise.all([founder.ended, misfit.ended]);
  });

  it('that never becomes complete ends at the timeout, for all, and its notice goes', async () => {
    const founder = member('incomplete', 3, 'work', 5000);
    await untilNotice();
    // It has no deadline of its own, and is told that the founder has given up.
    const patient = member('incomplete', 3);
    expect(await founder.said('code')).toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    expect(await patient.said('code')).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    await Promise.all([founder.ended, patient.ended]);
    expect(notices()).toEqual([]);
  });
});

describe.skipIf(loadNative() === undefined || IN_GATE)('members of a named job that die', () => {
  async function expectTold(survivors: readonly Member[], pid: number): Promise<void> {
    for (const { code, message } of await failuresOf(survivors)) {
      expect(code, message).toBe('ERR_RMA_RANK_FAILED');
      expect(message).toContain(`(process ${pid})`);
    }
    expect(await Promise.all(survivors.map(({ ended }) => ended))).toEqual(
      survivors.map(() => ({ code: 0, signal: null })),
    );
  }

  it('the founder, while others wait for the job to be complete', async () => {
    const founder = member('founder', 4);
    await untilNotice();
    const others = [member('founder', 4), member('founder', 4)];
    await Promise.all(others.map(({ said }) => said('pid')));
    await sleep(300);
    founder.child.kill('SIGKILL');
    await expectTold(others, founder.child.pid!);
  });

  it('the founder, and the others begin again in the same processes', async () => {
    const founder = member('anew', 4);
    await untilNotice();
    const others = [member('anew', 4, 'again'), member('anew', 4, 'again')];
    await Promise.all(others.map(({ said }) => said('pid')));
    await sleep(200);
    founder.child.kill('SIGKILL');
    await Promise.all(others.map(({ said }) => said('failed')));
    const fresh = [member('anew', 4), member('anew', 4)];
    await Promise.all([...others, ...fresh].map(({ said }) => said('done')));
    expect(notices()).toEqual([]);
  });

  it('any other, before the job is complete', async () => {
    const founder = member('joiner', 3);
    await untilNotice();
    const joiner = member('joiner', 3);
    await joiner.said('pid');
    await sleep(300);
    joiner.child.kill('SIGKILL');
    await expectTold([founder], joiner.child.pid!);
  });

  const seed = seedOfRun();
  const random = new Random(seed);
  it.each(
    Array.from({ length: 8 }, () => ({
      size: random.pick([2, 2, 3, 4]),
      victim: random.below(100),
      after: random.below(200),
    })),
  )(`at work: $size ranks, $after ms after the beginning (ONESIDED_SEED=${seed})`, async ({ size, victim, after }) => {
    const members = Array.from({ length: size }, () => member('work', size, 'loop'));
    await Promise.all(members.map(({ said }) => said('working')));
    await sleep(after);
    const [dead] = members.splice(victim % size, 1);
    dead.child.kill('SIGKILL');
    await expectTold(members, dead.child.pid!);
    expect(notices()).toEqual([]);
  });

  it('or leave without finalize', async () => {
    const members = [member('leaver', 3, 'loop'), member('leaver', 3, 'loop')];
    const leaver = member('leaver', 3, 'leave');
    await leaver.ended;
    await expectTold(members, leaver.child.pid!);
  });
});

describe.skipIf(loadNative() === undefined || IN_GATE)('the folder of named jobs', () => {
  async function refused(): Promise<void> {
    const [line] = await failuresOf([member('name', 1)]);
    expect(line).toMatchObject({ code: 'ERR_COMM', message: expect.stringContaining(folder()) });
  }

  it.each(['777', '770', '701'])('is refused with mode %s', async (mode) => {
    mkdirSync(folder());
    chmodSync(folder(), mode);
    await refused();
  });

  it('is refused if it is a link, even to a folder that would do', async () => {
    mkdirSync(join(runtime, 'real'), { mode: 0o700 });
    symlinkSync(join(runtime, 'real'), folder());
    await refused();
  });

  it('is refused if it is a file', async () => {
    writeFileSync(folder(), '', { mode: 0o700 });
    await refused();
  });

  it.skipIf(userInfo().uid !== 0)("is refused if it is another user's", async () => {
    mkdirSync(folder(), { mode: 0o700 });
    chownSync(folder(), 65534, 65534);
    await refused();
  });

  it('with a notice that is none says what to do', async () => {
    mkdirSync(folder(), { mode: 0o700 });
    for (const text of [
      '',
      'no JSON',
      '{}',
      '{"pid":1,"started":1,"fd":1,"size":1}',
      '[]',
      'null',
      '{"pid":"1/../self","started":0,"fd":"0","size":1}',
    ]) {
      writeFileSync(join(folder(), 'name.job'), text);
      const one = member('name', 1);
      await one.ended;
      const last = one.lines.at(-1)!;
      expect(last.done === true || last.code === 'ERR_COMM', `${text}: ${JSON.stringify(last)}`).toBe(true);
    }
  });
});
