/** The page of what was measured on ordinary networks, from the numbers that it keeps beside it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cells, type Measurement, type Row, spread } from './found.ts';

/** By TCP, between namespaces of this machine (main.ts). */
const BY_TCP = 'figures/real-ethernet.json';
/** By datagrams, on a Soft-RoCE device of a guest (../device/supersteps.ts). */
const BY_DATAGRAMS = 'figures/real-datagrams.json';

export function write(docs: string, measurement: Measurement): void {
  writeFileSync(join(docs, BY_TCP), `${JSON.stringify(measurement, null, 1)}\n`);
}

const read = (docs: string, file: string): Measurement | undefined =>
  existsSync(join(docs, file)) ? (JSON.parse(readFileSync(join(docs, file), 'utf8')) as Measurement) : undefined;

const machine = ({ cores, processor, node, load }: Measurement): string =>
  `${cores} cores, ${processor}, Node ${node};\na load of ${load.toFixed(0)} by other programs`;

function overTcp(measurement: Measurement): string {
  const { hosts, steps, cores, rows } = measurement;
  return `# Results on ordinary networks

Supersteps of \`onesided/bsp\` over TCP between ${hosts} network namespaces of one machine, a process each:
${machine(measurement)}.
\`npm run bench:ethernet -- --docs docs\` writes this page: do not edit it.

These are the relations of BSP over TCP/IP, figures 4 to 7 ([T2](results.md#t2), [T4](results.md#t4),
[T6](results.md#t6)), on real TCP. The kernel limits each port to the rate of the network (\`tbf\`). On the *shared*
network all hosts together have that rate, as on a bus; but nothing collides, since there is no CSMA/CD in a kernel. So
the claims about collisions, T1 and T3, have no row here.

Milliseconds, means and deviations of ${steps} supersteps. *Delivery* is from the end of the counts until everything is
there; a *superstep* is all of it, with its counts, and so it is of LPF (Lightweight Parallel Foundations), built with
MPICH: \`lpf_put\` and \`lpf_sync\`, by MPI's messages and by MPI's one-sided calls. It is timed from an empty superstep
on, MPI's calls and the write from a barrier on, without it.
Slots *kept* are packets that left within their slot, and the most by which one was late: ${hosts} processes take turns
on ${cores} cores here.

| network | relation | way | delivery | superstep or call | slots kept, latest |
| --- | --- | --- | --- | --- | --- |
${rows.map((one) => `| ${cells(one).join(' | ')} |`).join('\n')}
`;
}

/** How long datagrams take beside chunks. */
function againstChunks(rows: readonly Row[]): string {
  const ratios = rows.flatMap(({ network, way, delivery }) => {
    const chunks = rows.find((other) => other.network === network && other.way === 'chunks')?.delivery;
    return way.startsWith('datagrams') && delivery && chunks ? delivery.mean / chunks.mean : [];
  });
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(1));
  return `By datagrams a delivery takes ${least} to ${most} times as long as in chunks.`;
}

function byDatagrams(measurement: Measurement): string {
  const { hosts, steps, rows } = measurement;
  const asked = ({ asks, resent }: Row): string =>
    asks === undefined ? '' : `${asks.toFixed(1)}, ${resent!.toFixed(1)}`;
  const line = (row: Row): string => {
    const { network, way, delivery, superstep, failed } = row;
    const delivered = failed === undefined ? spread(delivery) : 'failed';
    return `| ${[network, way, delivered, spread(superstep), asked(row)].join(' | ')} |`;
  };
  return `
## By datagrams

The relation of [T5](results.md#t5), a shift of 100,000 bytes, on Soft-RoCE devices: ${hosts} processes in two guests
that are connected by a cable, and whose processors are emulated; neighbours are on different ones.
${machine(measurement)}.
\`npm run bench:rdma -- --supersteps --json docs/figures/real-datagrams.json\` measures it. Some of the packets
that come are dropped at random; the cable is not limited in rate, since reliable connections of such devices do not
control congestion. Chunks and packets go by these, and the device acknowledges and repeats them; datagrams nobody
acknowledges: processes ask for what they miss. There is no bus, and so no hump; what shows is the cost of losses.
Means and deviations of ${steps} supersteps; asks and packets sent again are those of all processes in a superstep.
Where nothing is lost they are for packets that came later than the ones before had let expect.

**${againstChunks(rows)}**
The device cuts chunks into packets in the kernel, while each packet of the other ways is a request of its own, which an
emulated processor takes milliseconds for; and that costs more than what was lost.

Where reliable connections fail: the Soft-RoCE of Linux 6.1 ends them in some runs (\`IBV_WC_REM_INV_REQ_ERR\`) when a
packet of a longer message is lost; \`ib_send_bw -s 65536\` of perftest fails there, too.

| packets lost | way | delivery (ms) | superstep (ms) | asks, sent again |
| --- | --- | --- | --- | --- |
${rows.map(line).join('\n')}
`;
}

/** Writes the page anew. */
export function draw(docs: string): void {
  const [tcp, datagrams] = [read(docs, BY_TCP), read(docs, BY_DATAGRAMS)];
  const text = (tcp === undefined ? '' : overTcp(tcp)) + (datagrams === undefined ? '' : byDatagrams(datagrams));
  writeFileSync(join(docs, 'results-real-ethernet.md'), text);
}
