/** Member 1 of a fabric of processes whose table is descriptor 3; what it does stands in its first argument. */
import { Row, rowOf } from '../../../src/providers/emulator/bells.ts';
import { openProcessFabric } from '../../../src/providers/emulator/process-fabric.ts';
import { addon } from '../../support/addon.ts';

const native = addon();
const table = new Int32Array(native.memoryMap(3, 0, 4096));
const fabric = openProcessFabric(native, table, 1, 2);
const { parking } = fabric;

/** Words of member 1's root. */
const PING = 0;
const PONG = 16;

switch (process.argv[2]) {
  case 'publish': {
    const root = fabric.allocate(10_000);
    new Uint8Array(root.buffer).fill(7);
    fabric.publishRoot(root);
    console.log('published');
    process.stdin.on('data', () => process.exit(0));
    break;
  }
  case 'echo-sync':
  case 'echo': {
    const rounds = Number(process.argv[3]);
    const root = fabric.allocate(4096);
    const words = new Int32Array(root.buffer as ArrayBuffer);
    fabric.publishRoot(root);
    for (let round = 1; round <= rounds; round++) {
      while (Atomics.load(words, PING) !== round) {
        const token = parking.arm();
        if (Atomics.load(words, PING) !== round) {
          if (process.argv[2] === 'echo') await parking.sleep(token, Number.POSITIVE_INFINITY);
          else parking.sleepSync(token, Number.POSITIVE_INFINITY);
        }
        parking.disarm();
      }
      Atomics.store(words, PONG, round);
      fabric.wake(0);
    }
    fabric.close();
    break;
  }
  case 'park': {
    const token = parking.arm();
    setTimeout(() => console.log('parked'), 200);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const before = process.cpuUsage();
    await parking.sleep(token, Number.POSITIVE_INFINITY);
    const { user, system } = process.cpuUsage(before);
    parking.disarm();
    console.log(`woken ${user + system}`);
    break;
  }
  case 'foreign': {
    // Another user of the machine: it gets the table, and not the memory.
    process.setgid?.(65534);
    process.setuid?.(65534);
    const { fd, pid } = {
      fd: Atomics.load(table, rowOf(0) + Row.HEAP_FD),
      pid: Atomics.load(table, rowOf(0) + Row.PID),
    };
    try {
      fabric.attach(0, Number(process.argv[3]), Number(process.argv[4]));
      console.log(`attached ${pid} ${fd}`);
    } catch (error) {
      console.log(`refused ${(error as Error).message}`);
    }
    fabric.close();
    break;
  }
  default:
    throw new Error(`unknown: ${process.argv[2]}`);
}
