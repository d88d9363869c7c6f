/** By which of its addresses a host reaches another one. */
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isOwnAddress } from '../whereabouts.ts';

/** Of the addresses of a name, the first that is one of this host's; nothing if none is. */
export async function ownAddressOf(host: string): Promise<string | undefined> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address).find(isOwnAddress);
}

/**
 * The address of this host from which packets to another one leave, as the kernel's routes say; nothing is sent.
 * Nothing if it has no route there, or the name no address.
 */
export async function addressTowards(host: string, port: number): Promise<string | undefined> {
  const found = await lookup(host).catch(() => undefined);
  if (found === undefined) return undefined;
  const socket = createSocket(found.family === 6 ? 'udp6' : 'udp4');
  try {
    return await new Promise((resolve) => {
      socket.on('error', () => resolve(undefined));
      socket.connect(port, found.address, () => resolve(socket.address().address));
    });
  } finally {
    socket.close();
  }
}
