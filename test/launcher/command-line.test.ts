import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { onesided, PROBE, start } from './command.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

describe.concurrent('mistakes on the command line', () => {
  it.each([
    [['run', '-n', '0', PROBE], '-n must be a number of ranks from 1 to 4096, not "0"'],
    [['run', '-n', '-1', PROBE], "'-n' argument is ambiguous"],
    [['run', '-n', '2.5', PROBE], 'not "2.5"'],
    [['run', '-n', '4097', PROBE], 'not "4097"'],
    [['run', '--hosts', 'a:1000000000', PROBE], 'and a job at most 4096'],
    [['run', '-n', 'two', PROBE], 'not "two"'],
    [['run', '-n'], 'argument missing'],
    [['run', PROBE], 'give the number of ranks with -n N'],
    [['run', '-n', '2'], 'no script given'],
    [['run', '-n', '2', '--frobnicate', PROBE], "Unknown option '--frobnicate'"],
    [['run', '-n', '2', '--timout', '5', PROBE], "Unknown option '--timout'; did you mean '--timeout'?"],
    [['trace', 'draw', 'x.json', '--fnece', '2'], "Unknown option '--fnece'; did you mean '--fence'?"],
    [['run', '-n', '2', '--frobnicate', PROBE], "Unknown option '--frobnicate'"],
    [['rnu', '-n', '2', PROBE], "'rnu' is not a command of onesided; did you mean 'run'?"],
    [['run', '-n', '2', '--timeout', '0', PROBE], '--timeout must be a number of seconds, not "0"'],
    [['run', '-n', '2', '--timeout', 'soon', PROBE], 'not "soon"'],
    [['run', '-n', '2', '--grace=-1', PROBE], '--grace must be a number of seconds, not "-1"'],
    [['run', '-n', '2', '--ranks', 'fibers', PROBE], '--ranks must be processes or threads, not "fibers"'],
    [
      ['run', '-n', '2', '--provider', 'rdma-core', '--ranks', 'threads', PROBE],
      '--provider rdma-core needs --ranks processes',
    ],
    [['run', '-n', '2', '--provider', 'pigeon', PROBE], 'not "pigeon"'],
    [
      ['run', '-n', '2', '--ranks', 'threads', 'no/such.js'],
      /the script "no\/such\.js" does not exist; looked for \/.*no\/such\.js/,
    ],
    [['run', '-n', '2', '--ranks', 'threads', import.meta.dirname], 'is a directory; name the file to run'],
    [['info', 'more'], "unexpected argument 'more'"],
    [['build', '--fast'], "Unknown option '--fast'"],
    [['walk'], "'walk' is not a command of onesided"],
    [[], 'no command given'],
    [['--walk'], "Unknown option '--walk'"],
  ])('onesided %j: one line, a hint, and code 2', async (args, message) => {
    const { code, stdout, stderr } = await onesided(...args);
    expect([code, stdout]).toEqual([2, '']);
    const lines = stderr.trimEnd().split('\n');
    if (typeof message === 'string') expect(lines[0]).toContain(message);
    else expect(lines[0]).toMatch(message);
    expect(lines.slice(1)).toEqual([expect.stringMatching(/^Try "onesided .*--help"\.$/)]);
  });
});

describe.concurrent('onesided', () => {
  it('tells its version', async () => {
    expect(await onesided('--version')).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('tells its commands, and each its options', async () => {
    const overview = await onesided('--help');
    expect(overview.code).toBe(0);
    const commands = [...overview.stdout.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name);
    expect(commands).toEqual(expect.arrayContaining(['run', 'info', 'build']));
    for (const command of ['run', 'info', 'build']) {
      const { code, stdout } = await onesided(command, '--help');
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`^Usage: onesided ${command}`));
    }
    expect((await onesided('run', '-n', '2', '--help')).stdout).toMatch(/^Usage: onesided run/);
  });

  it('passes --help after the script on to the script', async () => {
    expect((await onesided('run', '-n', '1', '--ranks', 'threads', PROBE, '*:argv', '--help')).stdout).toBe(
      '[0] ["*:argv","--help"]\n',
    );
  });

  it('info tells what is there, as text and as JSON', async () => {
    const { code, stdout } = await onesided('info', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      version,
      node: process.versions.node,
      providers: { emulator: { threads: { available: true } } },
    });
    expect((await onesided('info')).stdout).toContain(`Node        ${process.versions.node}\n`);
  });

  it('build tells what is missing', async () => {
    const { code, stderr } = await start(['build'], { env: { ...process.env, PATH: '/nonexistent' } }).finished;
    expect(code).toBe(1);
    expect(stderr).toContain('cannot compile the native addon: CMake (cmake)');
  });

  it('info tells why there is no addon, and what to do', async () => {
    const env = { ...process.env, ONESIDED_NO_ADDON: '1' };
    const text = await start(['info'], { env }).finished;
    expect(text.stdout).toContain('not loaded: disabled by ONESIDED_NO_ADDON=1');
    expect(text.stdout).toContain('build it with "npx onesided build"');
    const json = JSON.parse((await start(['info', '--json'], { env }).finished).stdout) as unknown;
    expect(json).toMatchObject({
      addon: { available: false },
      defaultRanks: 'threads',
      providers: { emulator: { processes: { available: false } } },
    });
  });
});

describe('the command of the package', () => {
  const command = fileURLToPath(new URL('../../bin/onesided.mjs', import.meta.url));

  it('is the built one', () => {
    const { stdout, status } = spawnSync(command, ['--version'], { encoding: 'utf8' });
    expect([stdout, status]).toEqual([`${version}\n`, 0]);
  });

  it('says what to do where nothing was built', () => {
    const folder = mkdtempSync(join(tmpdir(), 'onesided-test-'));
    try {
      cpSync(command, join(folder, 'bin/onesided.mjs'));
      const { stderr, status } = spawnSync(process.execPath, [join(folder, 'bin/onesided.mjs')], { encoding: 'utf8' });
      expect(stderr).toContain('run "npm ci && npm run build" first');
      expect(status).toBe(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
