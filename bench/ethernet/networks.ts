/**
 * Networks of ordinary Ethernet on this machine: a network namespace for each host, all joined by a bridge. Each port
 * carries so much each way (`tbf`). On a *shared* medium all hosts together send so much: what comes to the bridge goes
 * through one queue (`ifb`) first. That is half duplex, but nothing collides there, as on a bus with CSMA/CD.
 *
 * Needs root, and `ip` and `tc` (iproute2). Names begin with `os-`, addresses with 10.77.0.
 */
import { spawnSync } from 'node:child_process';

export interface Network {
  readonly name: string;
  /** Bits a second, as `tc` has it. */
  readonly rate: string;
  readonly shared: boolean;
}

export const NETWORKS: readonly Network[] = [
  { name: 'switch, 10 Mbit/s', rate: '10mbit', shared: false },
  { name: 'shared, 10 Mbit/s', rate: '10mbit', shared: true },
  { name: 'switch, 100 Mbit/s', rate: '100mbit', shared: false },
];

const BRIDGE = 'os-bridge';
/** Bytes that a port keeps: some 200 frames. */
const ROOM = 300_000;
/** More than a frame; with more, `tbf` lets that much pass at once. */
const BURST = 1600;

export const hostOf = (host: number): string => `os-host${host}`;
export const addressOf = (host: number): string => `10.77.0.${host + 1}`;

/** Why such networks cannot be made here; undefined: they can. */
export function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const missing = ['ip', 'tc'].find((command) => spawnSync(command, ['-V']).error !== undefined);
  return missing && `there is no command ${missing} (apt-get install iproute2)`;
}

function command(line: string): void {
  const [name, ...args] = line.split(' ');
  const { status, stderr } = spawnSync(name, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${line}: ${stderr.trim()}`);
}

function remove(hosts: number): void {
  for (let host = 0; host < hosts; host++) spawnSync('ip', ['netns', 'del', hostOf(host)]);
  spawnSync('ip', ['netns', 'del', BRIDGE]);
}

/** Runs `body` on such a network of so many hosts, and removes it. */
export async function onNetwork<R>({ rate, shared }: Network, hosts: number, body: () => Promise<R>): Promise<R> {
  const limit = `tbf rate ${rate} burst ${BURST} limit ${ROOM}`;
  remove(hosts);
  try {
    command(`ip netns add ${BRIDGE}`);
    command(`ip -n ${BRIDGE} link add bridge0 type bridge`);
    command(`ip -n ${BRIDGE} link set bridge0 up`);
    if (shared) {
      command(`ip -n ${BRIDGE} link add medium type ifb`);
      command(`ip -n ${BRIDGE} link set medium up`);
      command(`tc -n ${BRIDGE} qdisc add dev medium root ${limit}`);
    }
    for (let host = 0; host < hosts; host++) {
      const [name, port] = [hostOf(host), `port${host}`];
      command(`ip netns add ${name}`);
      // Frames as a wire has them: no segments of 64 KiB.
      const whole = 'gso_max_size 1514 gso_max_segs 1';
      command(`ip link add eth0 netns ${name} type veth peer name ${port} netns ${BRIDGE}`);
      command(`ip -n ${name} link set eth0 ${whole} up`);
      command(`ip -n ${name} link set lo up`);
      command(`ip -n ${name} address add ${addressOf(host)}/24 dev eth0`);
      command(`ip -n ${BRIDGE} link set ${port} ${whole} master bridge0 up`);
      command(`tc -n ${name} qdisc add dev eth0 root ${limit}`);
      if (!shared) {
        command(`tc -n ${BRIDGE} qdisc add dev ${port} root ${limit}`);
        continue;
      }
      command(`tc -n ${BRIDGE} qdisc add dev ${port} ingress`);
      command(
        `tc -n ${BRIDGE} filter add dev ${port} parent ffff: protocol all ` +
          'u32 match u32 0 0 action mirred egress redirect dev medium',
      );
    }
    return await body();
  } finally {
    remove(hosts);
  }
}
