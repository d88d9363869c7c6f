/** What `--hosts`, `--hostfile` and `--ssh` mean, and that no path is anything but a path to the shell of a host. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sentEnvironment } from '../../src/launcher/hosts/environment.ts';
import { ranksOfHosts, readHostFile, readHosts } from '../../src/launcher/hosts/host-list.ts';
import {
  type AgentPlace,
  DEFAULT_SSH,
  shellOn,
  splitCommand,
  startLine,
} from '../../src/launcher/hosts/remote-shell.ts';
import { hostAddress, outsideAddresses } from '../../src/start/whereabouts.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder('host-list');

describe('--hosts', () => {
  it('names hosts and their ranks; one without a number has one', () => {
    expect(readHosts('a:4,user@b.example:2,c, [fe80::1%eth0]:3')).toEqual([
      { host: 'a', slots: 4 },
      { host: 'user@b.example', slots: 2 },
      { host: 'c', slots: 1 },
      { host: 'fe80::1%eth0', slots: 3 },
    ]);
  });

  it.each(['', 'a,', 'a:0', 'a:x', 'a:-1', '-oProxyCommand=x', 'a b', '::1', '[a b]:1', 'a:1:2'])(
    'refuses %j',
    (text) => {
      expect(() => readHosts(text)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    },
  );

  it('gives ranks in blocks, in the order of the list, and a host that is named twice both', () => {
    expect(ranksOfHosts(readHosts('a:2,b:3,a'))).toEqual([
      { host: 'a', ranks: [0, 1, 5] },
      { host: 'b', ranks: [2, 3, 4] },
    ]);
    expect(ranksOfHosts(readHosts('a:2,b:2,c:2'), 3)).toEqual([
      { host: 'a', ranks: [0, 1] },
      { host: 'b', ranks: [2] },
    ]);
  });
});

describe('--hostfile', () => {
  const read = (text: string): unknown => {
    const file = join(folder, 'hosts');
    writeFileSync(file, text);
    return readHostFile(file);
  };

  it('is in the form of Open MPI or of Hydra', () => {
    expect(read('# two racks\na slots=4 max_slots=8\n\nb:2 # comment\n c  slots = 3\nd\r\ne slots=0\n')).toEqual([
      { host: 'a', slots: 4 },
      { host: 'b', slots: 2 },
      { host: 'c', slots: 3 },
      { host: 'd', slots: 1 },
    ]);
  });

  it('takes users and bindings as Hydra writes them, and says how a network is chosen', () => {
    expect(read('a:2 user=me\nb binding=core:2 user = you slots=3\n')).toEqual([
      { host: 'me@a', slots: 2 },
      { host: 'you@b', slots: 3 },
    ]);
    expect(() => read('a:2\nb:2 ifname=eth1\n')).toThrow(/^line 2 of .*: ifname is not known: .* set ONESIDED_ADDRESS/);
  });

  it.each(['', '# nothing\n', 'a\nb slots\n', 'a slots=many\n', 'a four\n', 'a user=-x\n', 'a@b user=c\n', '-x\n'])(
    'refuses %j',
    (text) => {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    },
  );

  it('refuses a file that is not there, and says so', () => {
    expect(() => readHostFile(join(folder, 'no'))).toThrow(/cannot read the file of hosts: ENOENT/);
  });
});

describe('--ssh', () => {
  it.each([
    ['ssh -p 2222', ['ssh', '-p', '2222']],
    ['  docker   exec -i ', ['docker', 'exec', '-i']],
    [`"/my tools/ssh" -o 'A B' x"y"'z' ''`, ['/my tools/ssh', '-o', 'A B', 'xyz', '']],
    ['a\\ b "c\\"d" \'e\\f\'', ['a b', 'c"d', 'e\\f']],
  ])('%j is a command of words', (text, words) => {
    expect(splitCommand(text)).toEqual(words);
  });

  it.each(['', '  ', 'ssh "x'])('refuses %j', (text) => {
    expect(() => splitCommand(text)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
  });

  it('gets the host and the one word sh behind it, or the host where {} stands', () => {
    expect(shellOn('b', undefined)).toEqual([...DEFAULT_SSH, 'b', 'sh']);
    expect(shellOn('b', ['docker', 'exec', '-i'])).toEqual(['docker', 'exec', '-i', 'b', 'sh']);
    expect(shellOn('b', ['kubectl', 'exec', '-i', '{}', '--'])).toEqual(['kubectl', 'exec', '-i', 'b', '--', 'sh']);
    expect(shellOn('b', ['nsenter', '--net=/run/netns/{}'])).toEqual(['nsenter', '--net=/run/netns/b', 'sh']);
  });

  it('is not needed on this host', () => {
    expect(shellOn('localhost', ['ssh'])).toEqual(['sh']);
    for (const name of [hostname(), '127.0.0.1', '::1']) expect(shellOn(name, undefined)).toEqual(['sh']);
    const silently = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=8'];
    expect(shellOn(hostname(), ['ssh', '-p', '9'])).toEqual(['ssh', '-p', '9', ...silently, hostname(), 'sh']);
  });
});

describe('the line that starts an agent', () => {
  // Node itself runs nothing whose path contains a backslash.
  const strange = join(folder, `it's "a" $HOME \`id\` ; & *\nnext`);
  const main = join(strange, 'main.mjs');
  mkdirSync(join(strange, 'node_modules', 'onesided', 'bin'), { recursive: true });
  mkdirSync(join(strange, 'deep', 'er'), { recursive: true });
  const program = 'console.log(JSON.stringify([process.cwd(), process.argv.slice(1)]));\n';
  writeFileSync(main, program);
  const installed = join(strange, 'node_modules', 'onesided', 'bin', 'onesided.mjs');
  writeFileSync(installed, program);
  symlinkSync(process.execPath, join(strange, 'node'));

  const said = (place: AgentPlace, PATH = '/usr/bin:/bin'): string => {
    const { stdout, stderr } = spawnSync('/bin/sh', [], { input: startLine(place), encoding: 'utf8', env: { PATH } });
    expect(stderr).toBe('');
    return stdout.trim();
  };

  it('takes every path as it is', () => {
    const place = { folder: strange, node: join(strange, 'node'), main };
    expect(JSON.parse(said(place))).toEqual([strange, [main, 'agent']]);
  });

  it('finds Node in the PATH, and the package at or above the folder', () => {
    const place = { folder: join(strange, 'deep', 'er'), node: '/nowhere/node', main: '/nowhere/main.mjs' };
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, 'node'));
    const [where, [found, word]] = JSON.parse(said(place, `${bin}:/usr/bin:/bin`)) as [string, string[]];
    expect([where, word]).toEqual([place.folder, 'agent']);
    expect(found).toBe(installed);
  });

  it('says what is missing', () => {
    const place = { folder: strange, node: join(strange, 'node'), main };
    expect(said({ ...place, folder: '/nowhere' })).toBe('onesided-shell folder');
    expect(said({ ...place, node: '/nowhere/node' }, '/nowhere')).toBe('onesided-shell node');
    expect(said({ ...place, folder: '/', main: '/nowhere/main.mjs' })).toBe('onesided-shell package');
  });
});

it('the environment of a login stays on its host, the program’s goes along', () => {
  const env = { PATH: '/x', HOME: '/h', SSH_CONNECTION: 'a', KUBERNETES_PORT: '1', ONESIDED_SECRET: 's', PWD: '/' };
  expect(sentEnvironment({ ...env, MODEL: 'm', NODE_OPTIONS: '--x', ONESIDED_PROVIDER: 'p', EMPTY: '' })).toEqual({
    MODEL: 'm',
    NODE_OPTIONS: '--x',
    ONESIDED_PROVIDER: 'p',
    EMPTY: '',
  });
});

it('a host is reached where it was told, else where ssh has reached it if that is one of its own addresses', () => {
  const [first] = outsideAddresses();
  expect(hostAddress({ ONESIDED_ADDRESS: '203.0.113.7', SSH_CONNECTION: `x 1 ${first} 22` })).toBe('203.0.113.7');
  for (const address of outsideAddresses()) expect(hostAddress({ SSH_CONNECTION: `x 1 ${address} 22` })).toBe(address);
  for (const foreign of ['203.0.113.7', '127.0.0.1', '::1'])
    expect(hostAddress({ SSH_CONNECTION: `x 1 ${foreign} 22` })).toBe(first);
  expect(hostAddress({ ONESIDED_ADDRESS: '' })).toBe(first);
});
