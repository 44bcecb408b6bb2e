import { parseOutputs } from '../outputs';
import { display } from './fakecontext';

const ERROR = {
  output_type: 'error',
  ename: 'ProviderError',
  evalue: 'no',
  traceback: ['a', 'b']
};

const STREAM = { output_type: 'stream', name: 'stdout', text: 'one\n' };

test.each([
  ['markdown', display({ 'text/markdown': 'hello' })],
  [
    'a picture',
    display({ 'image/png': 'aGk=' }, { 'image/png': { width: 3 } })
  ],
  ['JSON', display({ 'application/vnd.crush.turn.v1+json': { a: [1] } })],
  ['JSON that is a list', display({ 'application/json': ['a', 'b'] } as never)],
  ['a mark of ours', display({}, { crush: { pending: true } })],
  ['an error', ERROR],
  ['a stream', STREAM],
  [
    'a result',
    {
      ...display({ 'text/plain': '3' }),
      output_type: 'execute_result',
      execution_count: 4
    }
  ]
])('%s stays as it is', (_, output) => {
  expect(parseOutputs([output as never])).toEqual([output]);
});

test.each([
  ['null', null],
  ['a text', 'display_data'],
  ['an unknown kind', { output_type: 'script', data: {}, metadata: {} }],
  ['a display without data', { output_type: 'display_data', metadata: {} }],
  [
    'a result without a number',
    { ...display({}), output_type: 'execute_result' }
  ],
  ['a stream of another name', { ...STREAM, name: 'stdin' }],
  ['a stream without text', { output_type: 'stream', name: 'stdout' }],
  ['an error without a name', { ...ERROR, ename: undefined }],
  ['an error whose traceback is a text', { ...ERROR, traceback: 'a' }]
])('%s is left out', (_, output) => {
  expect(parseOutputs([output as never, ERROR])).toEqual([ERROR]);
});

test('lines of text are joined, and other values of a text type are left out', () => {
  expect(
    parseOutputs([
      {
        ...display({
          'text/markdown': ['a\n', 'b'],
          'text/plain': 7,
          'text/html': { b: 1 }
        } as never),
        transient: { display_id: 'd' }
      } as never,
      { ...STREAM, text: ['one\n', 'two\n'] }
    ])
  ).toEqual([
    display({ 'text/markdown': 'a\nb' }),
    { ...STREAM, text: 'one\ntwo\n' }
  ]);
});

test('a stream goes on in the next output of its name only', () => {
  expect(
    parseOutputs([
      STREAM,
      { ...STREAM, text: 'two\n' },
      { ...STREAM, name: 'stderr' },
      STREAM
    ])
  ).toEqual([
    { ...STREAM, text: 'one\ntwo\n' },
    { ...STREAM, name: 'stderr' },
    STREAM
  ]);
});

test('metadata that are no object become none', () => {
  expect(
    parseOutputs([{ output_type: 'display_data', data: {}, metadata: [1] }])
  ).toEqual([display({})]);
});
