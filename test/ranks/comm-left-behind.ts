/**
 * A barrier that was left goes on whatever its rank waits for: here for a connection, which another rank makes once it
 * has come out of that barrier. Nothing else wakes the rank, not even a timer.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Communicator } from 'onesided';
import { runCases } from './support/cases.ts';

const ROUNDS = 6;
/** Of three, the one that waits for a message that rank 0 sends when it has received one. */
const LAST = 2;

async function listening(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function leaveAndListen(world: Communicator): Promise<void> {
  const server = await listening();
  const { port } = server.address() as { port: number };
  world.send(Int32Array.of(port), LAST);
  const connected = once(server, 'connection');
  const complete = await world.barrier({ timeout: 1 }).then(
    () => true,
    () => false,
  );
  const [socket] = (await connected) as [Socket];
  socket.destroy();
  server.close();
  if (!complete) await world.barrier();
}

await runCases({
  async 'a barrier that was left goes on while its rank only listens'(world) {
    for (let round = 0; round < ROUNDS; round++) {
      await world.barrier();
      if (world.rank === 0) {
        await leaveAndListen(world);
        continue;
      }
      const port = new Int32Array(1);
      if (world.rank === LAST) await world.receive(port, 0);
      await sleep(30);
      await world.barrier();
      if (world.rank === LAST) await once(connect(port[0], '127.0.0.1'), 'close');
    }
  },
});
