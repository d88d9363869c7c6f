/** As "parent" starts itself as "child", which the kernel is to kill when the parent ends. Both stay until killed. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { addon } from '../../support/addon.ts';

if (process.argv[2] === 'parent') {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), 'child', String(process.pid)];
  spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
} else {
  const parent = addon().parentDeathSignal(9);
  console.log(`child ${process.pid} ${parent === Number(process.argv[3])}`);
}
setInterval(() => {}, 1000);
