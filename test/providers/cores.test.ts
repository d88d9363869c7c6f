/** How many cores ranks have where a container limits their processor time (src/cores.ts). */
import { expect, test } from 'vitest';
import { cpuQuota, usableCores } from '../../src/cores.ts';

function quotaWith(files: Readonly<Record<string, string>>): number | undefined {
  return cpuQuota((path) => files[path]);
}

const V2 = '0::/user.slice/app.service\n';

test.each([
  ['no control groups', {}, undefined],
  [
    'version 2, no limit',
    { '/proc/self/cgroup': V2, '/sys/fs/cgroup/user.slice/app.service/cpu.max': 'max 100000\n' },
    undefined,
  ],
  ['version 2', { '/proc/self/cgroup': V2, '/sys/fs/cgroup/user.slice/app.service/cpu.max': '150000 100000\n' }, 1.5],
  [
    'version 2, a group above has less',
    {
      '/proc/self/cgroup': V2,
      '/sys/fs/cgroup/user.slice/app.service/cpu.max': '400000 100000\n',
      '/sys/fs/cgroup/user.slice/cpu.max': '50000 100000\n',
    },
    0.5,
  ],
  ['version 2, in a container', { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '200000 100000' }, 2],
  [
    'version 1',
    {
      '/proc/self/cgroup': '4:memory:/a\n1:cpu,cpuacct:/docker/1\n0::/\n',
      '/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us': '250000\n',
      '/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us': '100000\n',
    },
    2.5,
  ],
  [
    'version 1, in a container that is told the path outside',
    {
      '/proc/self/cgroup': '1:cpu:/docker/1\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '100000',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '50000',
    },
    2,
  ],
  [
    'version 1, no limit',
    {
      '/proc/self/cgroup': '1:cpu:/\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
    },
    undefined,
  ],
  [
    'paths that lead out of the mount, and files that say nothing',
    {
      '/proc/self/cgroup': '0::/../other\nnonsense\n',
      '/sys/fs/cgroup/../other/cpu.max': '1 100',
      '/sys/fs/cgroup/cpu.max': '',
    },
    undefined,
  ],
] as const)('%s', (_, files, expected) => {
  expect(quotaWith(files as Readonly<Record<string, string>>)).toBe(expected);
});

test('a quota lets ranks use whole cores, and always one', () => {
  expect([usableCores(8, undefined), usableCores(8, 2.5), usableCores(2, 16), usableCores(8, 0.2)]).toEqual([
    8, 2, 2, 1,
  ]);
});
