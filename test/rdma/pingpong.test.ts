/**
 * A C program at the other end: our queue pair talks to the stock `ibv_rc_pingpong` of rdma-core, as its client and as
 * its server. Both ends exchange their addresses over TCP, as that program does it: `LID:QPN:PSN:GID` in hexadecimal,
 * ended by a zero.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { RdmaAddress } from '../../src/providers/rdma-core/addresses.ts';
import { openRdma, type RdmaCoreContext } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint } from '../../src/providers/rdma-core/rdma-devices.ts';
import { WcOpcode, WcStatus, wcStatusName } from '../../src/verbs/completion-queue.ts';
import { Access } from '../../src/verbs/memory.ts';
import { QpState, SendFlag } from '../../src/verbs/queue-pair.ts';

const endpoint = chooseEndpoint();
const ROUNDS = 200;
const BYTES = 3000;
const PORT = 18_515;
const MESSAGE = 'LLLL:QQQQQQ:PPPPPP:'.length + 32 + 1;
const OUR_PSN = 0x5a5a5a;
/**
 * What ibv_rc_pingpong fills its buffer with. It has one for both directions: it sends this if it begins, and then what
 * it has received.
 */
const FILLING = 0x7b;
const OURS = Uint8Array.from({ length: BYTES }, (_, i) => i % 251);

function pingpong(...args: string[]): Promise<{ code: number | null; output: string }> {
  const { device, gidIndex, port } = endpoint;
  const child = spawn('ibv_rc_pingpong', [
    ...['-d', device, '-i', String(port), '-g', String(gidIndex), '-n', String(ROUNDS), '-s', String(BYTES)],
    ...['-p', String(PORT), ...args],
  ]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

/** Reads so many bytes. */
async function take(socket: Socket, bytes: number): Promise<string> {
  let text = '';
  while (text.length < bytes) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) await once(socket, 'readable');
    else text += chunk.toString('latin1');
  }
  return text;
}

/** One end: its memory, queues and queue pair, and the exchange of addresses. */
class Player {
  readonly #peers: RdmaAddress[] = [];
  readonly #context: RdmaCoreContext = openRdma(endpoint, 0, this.#peers);
  readonly #pd = this.#context.allocPd();
  readonly #memory = this.#context.allocateMemory(2 * BYTES);
  readonly #region = this.#pd.registerMemory(this.#memory, 0, 2 * BYTES, Access.LOCAL_WRITE);
  readonly #cq = this.#context.createCq(2 * ROUNDS);
  readonly #qp = this.#pd.createQueuePair({
    sendCq: this.#cq,
    recvCq: this.#cq,
    maxSendWr: 16,
    maxRecvWr: ROUNDS,
  });

  constructor() {
    this.#peers.push(this.#context.own);
    new Uint8Array(this.#memory.buffer).set(OURS);
    this.#qp.modify({ state: QpState.INIT });
    for (let i = 0; i < ROUNDS; i++) this.#qp.postRecv(i, this.#region.lkey, this.#memory.address + BYTES, BYTES);
  }

  get address(): string {
    const { lid, gid } = this.#context.own;
    const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
    return `${hex(lid, 4)}:${hex(this.#qp.number, 6)}:${hex(OUR_PSN, 6)}:${gid.replaceAll(':', '')}\0`;
  }

  connect(message: string): void {
    const [lid, qpNumber, psn, wire] = message.replace('\0', '').split(':');
    const gid = wire.match(/.{4}/g)!.join(':');
    this.#peers.push({ gid, lid: Number.parseInt(lid, 16), mtu: this.#context.own.mtu });
    const dest = { member: 1, qpNumber: Number.parseInt(qpNumber, 16) };
    this.#qp.modify({
      state: QpState.RTR,
      dest,
      rqPsn: Number.parseInt(psn, 16),
      maxDestRdAtomic: 1,
      minRnrTimerMs: 0.64,
    });
    this.#qp.modify({ state: QpState.RTS, sqPsn: OUR_PSN, maxRdAtomic: 1 });
  }

  #send(): void {
    this.#qp.wrStart();
    this.#qp.wrSend(1, SendFlag.SIGNALED);
    this.#qp.wrSetSge(this.#region.lkey, this.#memory.address, BYTES);
    this.#qp.wrComplete();
  }

  /** Answers each message by one, until both sides have sent all. */
  async play(begins: boolean): Promise<void> {
    const received = new Uint8Array(this.#memory.buffer, BYTES, BYTES);
    let [sent, done, got] = [0, 0, 0];
    if (begins) {
      this.#send();
      sent++;
    }
    const deadline = performance.now() + 60_000;
    while (done < ROUNDS || got < ROUNDS) {
      const n = this.#cq.poll(16);
      const { status, opcode, byteLen } = this.#cq.wc;
      for (let i = 0; i < n; i++) {
        expect(wcStatusName(status[i])).toBe(wcStatusName(WcStatus.SUCCESS));
        if (opcode[i] !== WcOpcode.RECV) {
          done++;
          continue;
        }
        expect(byteLen[i]).toBe(BYTES);
        const first = !begins && got === 0;
        expect(received.every((byte, at) => byte === (first ? FILLING : OURS[at]))).toBe(true);
        received.fill(0);
        got++;
        if (sent < ROUNDS) {
          this.#send();
          sent++;
        }
      }
      if (n > 0) continue;
      if (performance.now() > deadline) throw new Error(`after ${got} of ${ROUNDS} messages nothing came any more`);
      await sleep(0);
    }
  }

  close(): void {
    this.#context.close();
  }
}

describe('ibv_rc_pingpong of rdma-core', () => {
  test('is our server', async () => {
    const server = pingpong();
    await sleep(3000);
    const player = new Player();
    const socket = dial(PORT, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(player.address);
    player.connect(await take(socket, MESSAGE));
    socket.write('done\0');
    await player.play(true);
    const { code, output } = await server;
    socket.destroy();
    player.close();
    expect(output).toMatch(new RegExp(`${ROUNDS} iters in`));
    expect(code, output).toBe(0);
  });

  test('is our client', async () => {
    const listener = createServer();
    await once(listener.listen(PORT, '127.0.0.1'), 'listening');
    const client = pingpong('127.0.0.1');
    const [socket] = (await once(listener, 'connection')) as [Socket];
    const player = new Player();
    player.connect(await take(socket, MESSAGE));
    socket.write(player.address);
    await take(socket, 'done\0'.length);
    await player.play(false);
    const { code, output } = await client;
    socket.destroy();
    listener.close();
    player.close();
    expect(output).toMatch(new RegExp(`${ROUNDS} iters in`));
    expect(code, output).toBe(0);
  });
});
