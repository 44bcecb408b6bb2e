import { parseMessage } from '../protocol';

const RECORD = { version: 1, turn: 'c1.2', run: 2, revision: 5, more: [1] };

const OUTPUT = {
  output_type: 'display_data',
  data: { 'text/markdown': 'hello' },
  metadata: {}
};

test.each([
  [
    'a turn',
    { method: 'turn', cell_id: 'c1', record: RECORD },
    { method: 'turn', cellId: 'c1', record: RECORD, source: null }
  ],
  [
    'a turn that is gone',
    { method: 'turn', cell_id: 'c1', record: null },
    { method: 'turn', cellId: 'c1', record: null, source: null }
  ],
  [
    'the session',
    { method: 'session', record: { id: 's', later: true }, revision: 0 },
    { method: 'session', record: { id: 's', later: true }, revision: 0 }
  ],
  [
    'outputs of a cell that ended',
    {
      method: 'outputs',
      cells: [
        {
          cell_id: 'c1',
          outputs: [OUTPUT],
          execution_count: 3,
          is_running: false
        }
      ]
    },
    {
      method: 'outputs',
      cells: [
        {
          cellId: 'c1',
          outputs: [OUTPUT],
          executionCount: 3,
          isRunning: false
        }
      ]
    }
  ],
  [
    'outputs of a cell that runs',
    {
      method: 'outputs',
      cells: [
        { cell_id: 'c1', outputs: [], execution_count: 3, is_running: true }
      ]
    },
    {
      method: 'outputs',
      cells: [
        { cellId: 'c1', outputs: [], executionCount: null, isRunning: true }
      ]
    }
  ],
  [
    'stale cells',
    { method: 'stale', cells: ['c1', 'c2'] },
    { method: 'stale', cellIds: ['c1', 'c2'] }
  ],
  [
    'ready',
    { method: 'ready', kernel: 'k1', later: 1 },
    { method: 'ready', kernel: 'k1' }
  ]
])('%s is understood', (_, data, message) => {
  expect(parseMessage(data)).toEqual(message);
});

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'turn'],
  ['a list', [{ method: 'ready', kernel: 'k1' }]],
  ['no method', { kernel: 'k1' }],
  ['an unknown method', { method: 'dance' }],
  ['a method that every object has', { method: 'toString' }],
  ['a turn without a cell', { method: 'turn', record: RECORD }],
  ['a turn of no cell', { method: 'turn', cell_id: '', record: RECORD }],
  ['a turn without a record', { method: 'turn', cell_id: 'c1' }],
  ['a turn that is a list', { method: 'turn', cell_id: 'c1', record: [] }],
  [
    'a turn without an id',
    { method: 'turn', cell_id: 'c1', record: { revision: 1 } }
  ],
  [
    'a turn of half a revision',
    { method: 'turn', cell_id: 'c1', record: { turn: 'c1.1', revision: 1.5 } }
  ],
  [
    'a turn with a negative revision',
    { method: 'turn', cell_id: 'c1', record: { turn: 'c1.1', revision: -1 } }
  ],
  ['a session without a record', { method: 'session', revision: 1 }],
  ['a session without a revision', { method: 'session', record: {} }],
  ['outputs that are no list', { method: 'outputs', cells: { length: 1 } }],
  ['stale cells that are no list', { method: 'stale', cells: 'c1' }],
  ['ready without a kernel', { method: 'ready' }],
  ['ready with a number', { method: 'ready', kernel: 7 }]
])('%s is ignored', (_, data) => {
  expect(parseMessage(data)).toBeNull();
});

test('of a list, what is of no use is left out', () => {
  const good = {
    cell_id: 'c1',
    outputs: [],
    execution_count: 1,
    is_running: false
  };

  expect(
    parseMessage({
      method: 'outputs',
      cells: [
        null,
        { ...good, cell_id: 1 },
        { ...good, outputs: 'none' },
        { ...good, is_running: 1 },
        { ...good, execution_count: 'one' }
      ]
    })
  ).toEqual({
    method: 'outputs',
    cells: [
      { cellId: 'c1', outputs: [], executionCount: null, isRunning: false }
    ]
  });
  expect(parseMessage({ method: 'stale', cells: ['c1', 2, null, ''] })).toEqual(
    { method: 'stale', cellIds: ['c1'] }
  );
});

test('a key that would change what an object inherits is left out, at any depth', () => {
  const hostile = JSON.stringify({
    method: 'turn',
    cell_id: '__proto__',
    record: { turn: 'c1.1', revision: 1, messages: [{ a: 1 }] }
  })
    .replace('"a":1', '"__proto__":{"polluted":true},"constructor":{"a":1}')
    .replace('"revision":1', '"revision":1,"__proto__":{"end":"end_turn"}');

  const message = parseMessage(JSON.parse(hostile));

  expect(message).toEqual({
    method: 'turn',
    cellId: '__proto__',
    record: {
      turn: 'c1.1',
      revision: 1,
      messages: [{ constructor: { a: 1 } }]
    },
    source: null
  });
  expect(JSON.stringify(message)).not.toContain('__proto__":{');
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
