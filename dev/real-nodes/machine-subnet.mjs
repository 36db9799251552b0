/** Subnets of machines: four addresses each of 10.231.0.0/16, one for the host and one for the machine. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const PREFIX = [10, 231];
const SUBNETS = 2 ** 14;
const ATTEMPTS = 200;

/**
 * Claims a subnet that no other machine has and no route of this host leads to, for as long as this process lives: the
 * claim is an abstract socket, which no crash leaves behind.
 */
export async function claimSubnet() {
  const routes = readRoutes();
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const index = Math.floor(Math.random() * SUBNETS);
    const subnet = describe(index);
    if (routes.some((route) => covers(route, subnet.number)) || !(await claim(subnet.interfaceName))) continue;
    return subnet;
  }
  throw new Error(`no subnet of ${PREFIX.join('.')}.0.0/16 is free: routes of this host lead to all that were tried`);
}

function describe(index) {
  const third = index >> 6;
  const fourth = (index & 63) * 4;
  const address = (last) => [...PREFIX, third, fourth + last].join('.');
  const number = ((PREFIX[0] << 24) | (PREFIX[1] << 16) | (third << 8) | fourth) >>> 0;
  return { interfaceName: `drydock${index}`, gateway: address(1), address: address(2), number };
}

function claim(name) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(`\0drydock-lab-${name}`, () => {
      server.unref();
      resolve(true);
    });
  });
}

/** All but the default route, from /proc/net/route: addresses in hexadecimal, lowest byte first. */
function readRoutes() {
  const lines = readFileSync('/proc/net/route', 'utf8').trim().split('\n').slice(1);
  const parse = (hex) => Buffer.from(hex, 'hex').readUInt32LE();
  return lines
    .map((line) => line.split('\t'))
    .map((fields) => ({ destination: parse(fields[1]), mask: parse(fields[7]) }))
    .filter(({ mask }) => mask !== 0);
}

function covers({ destination, mask }, number) {
  return (number & mask) >>> 0 === destination || (destination & ~3) >>> 0 === number;
}
