import { describe, expect, it } from 'vitest';
import { valueIn } from '../../bench/device/perftest.ts';
import { DEVICE_ROWS } from '../../bench/device/rows.ts';
import { ProgramError } from '../../bench/programs.ts';

const LATENCY = `                    RDMA_Write Latency Test
 Dual-port       : OFF          Device         : rxe0
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
99% percentile[usec]   99.9% percentile[usec]
 8       1000          10.40          214.17       11.30              12.46            5.12           20.90    \
              214.17
---------------------------------------------------------------------------------------
`;
const BANDWIDTH = `                    RDMA_Write BW Test
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000             120.51             100.00             0.001600
`;

describe('perftest', () => {
  it('gives the mean of the latency in microseconds', () => {
    expect(valueIn(LATENCY)).toBeCloseTo(12_460);
  });

  it('gives the mean bandwidth in 2^20 bytes', () => {
    expect(valueIn(BANDWIDTH)).toBeCloseTo(104.8576);
  });

  it('is not believed without a heading that is known, or without values', () => {
    expect(() => valueIn(LATENCY.replace('t_avg', 't_mean'))).toThrow(ProgramError);
    expect(() => valueIn(LATENCY.replace(/^ 8 .*$/m, ''))).toThrow(ProgramError);
    expect(() => valueIn("Couldn't connect to 127.0.0.1:18515")).toThrow(/Couldn't connect/);
  });
});

describe('rows on a device', () => {
  it('have names of their own, and a requirement where they have a peer in C, and only there', () => {
    expect(new Set(DEVICE_ROWS.map(({ id }) => id)).size).toBe(DEVICE_ROWS.length);
    for (const { peer, required } of DEVICE_ROWS)
      expect(peer !== undefined && peer.name !== 'messages').toBe(required !== undefined);
  });
});
