import { testChapter } from './chapter.ts';

testChapter('errors');
