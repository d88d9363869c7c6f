/** What the numbers of an Ethernet must be to each other, and to those of its fabric. */
import type { RmaError } from '../../../errors.ts';
import type { TcpNumbers } from './ethernet-numbers.ts';
import { EthernetKind, type EthernetNumbers, frameTime, TCP_IP_HEADERS, UDP_IP_HEADERS } from './ethernet-numbers.ts';

interface Checked {
  readonly adapter: {
    readonly packet: number;
    readonly barrierSend?: number;
    readonly barrierReceive?: number;
  };
  readonly ethernet?: EthernetNumbers;
  readonly tcp?: TcpNumbers;
}

const OF_A_BUS = ['slot', 'jam', 'attempts', 'backoffLimit'] as const;
const OF_A_SWITCH = ['room', 'forward'] as const;

/**
 * @param wrong makes the error: a field, and what is wrong with it
 * Errors: what `wrong` returns.
 */
export function checkEthernet(fabric: Checked, wrong: (field: string, what: string) => RmaError): void {
  const { ethernet, tcp, adapter } = fabric;
  if (ethernet === undefined && tcp === undefined) return;
  if (ethernet === undefined) throw wrong('ethernet', 'is missing: tcp goes with it');
  if (tcp === undefined) throw wrong('tcp', 'is missing: ethernet goes with it');
  checkKind(ethernet, wrong);
  const { mtu } = ethernet;
  if (tcp.mss + TCP_IP_HEADERS > mtu)
    throw wrong('tcp.mss', `must be at most ${mtu - TCP_IP_HEADERS} (ethernet.mtu less headers), not ${tcp.mss}`);
  for (const field of ['window', 'window0'] as const) {
    if (tcp[field] < tcp.mss) throw wrong(`tcp.${field}`, `must be tcp.mss (${tcp.mss}) or more, not ${tcp[field]}`);
  }
  const most = mtu - UDP_IP_HEADERS - tcp.header;
  if (adapter.packet > most)
    throw wrong('adapter.packet', `must be at most ${most} (ethernet.mtu less headers), not ${adapter.packet}`);
  if (adapter.barrierSend !== undefined || adapter.barrierReceive !== undefined)
    throw wrong('adapter.barrierSend', 'does not go with ethernet: its adapters carry out no barriers');
}

function checkKind(ethernet: EthernetNumbers, wrong: (field: string, what: string) => RmaError): void {
  const isBus = ethernet.kind === EthernetKind.BUS;
  const kind = isBus ? 'a bus (ethernet.kind 1)' : 'a switch (ethernet.kind 2)';
  for (const field of isBus ? OF_A_BUS : OF_A_SWITCH) {
    if (ethernet[field] === undefined) throw wrong(`ethernet.${field}`, `is missing: ${kind} needs it`);
  }
  for (const field of isBus ? OF_A_SWITCH : OF_A_BUS) {
    if (ethernet[field] !== undefined) throw wrong(`ethernet.${field}`, `has no meaning on ${kind}`);
  }
  if (!isBus) return;
  // What collision-bus.ts relies on.
  const { propagation, interframe, jam } = ethernet;
  if (jam! < interframe / 3 - 1e-9)
    throw wrong('ethernet.jam', `must be a third of ethernet.interframe (${interframe}) or more, not ${jam}`);
  const shortest = frameTime(ethernet, 0);
  if (2 * propagation + interframe / 3 >= shortest) {
    throw wrong(
      'ethernet.propagation',
      `must be below ${((shortest - interframe / 3) / 2).toFixed(2)}, so that a station learns of each collision ` +
        `while it sends, not ${propagation}`,
    );
  }
}
