/**
 * What a process does to others that sends messages of the provider's own, with the right tag: one that has read the
 * traffic, or a peer that is not as it should be. On the loopback interface; run by `npm run test:tcp`.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startProgram } from '../support/children.ts';
import { freePort } from '../support/ports.ts';
import { compileStrangers, Kind, Stranger } from './stranger.ts';

const LONG = { timeout: 120_000 };

compileStrangers();

// An address of IP, as libfabric has it.
function at(port: number): Uint8Array {
  return Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Uint8Array(8));
}

test('strangers’ messages while an endpoint is opened do not make it deaf', LONG, async () => {
  const found: string[] = [];
  // It is opened in some milliseconds: a stranger must be there first.
  for (let round = 0; round < 5; round++) {
    const port = await freePort();
    const stranger = await Stranger.start();
    stranger.begin({ name: at(port), tag: [1, 2] }, { kind: Kind.PING }, 200);
    for (const provider of ['NET', 'TCP']) {
      process.env[`FI_${provider}_PORT_LOW_RANGE`] = String(port);
      process.env[`FI_${provider}_PORT_HIGH_RANGE`] = String(port + 3);
      onTestFinished(() => {
        for (const end of ['LOW', 'HIGH']) delete process.env[`FI_${provider}_PORT_${end}_RANGE`];
      });
    }
    const { stdout, stderr } = await startProgram(new URL('programs/open.ts', import.meta.url)).ended;
    found.push(stdout + stderr);
  }
  expect(found).toEqual(found.map(() => 'opened true\nwritten 1\n'));
});
