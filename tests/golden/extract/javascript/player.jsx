#!/usr/bin/env node
import React, { useState } from "react";
import * as codec from './codec.js';
import "./side-effect.css";
export { seek } from "./seek";
export * from "./volume";
const fs = require("fs");
const notes = translate("require", "FIXME: a string");

/**
 * Plays a track.
 * FIXME: gapless playback
 *   drops the first 20 ms
 */
export default class Player extends codec.Decoder {
  static count = 0;
  #volume = 1;
  onEnd = (event) => { this.stop(event); };

  constructor(url, { loop = false, rate = 1.0 } = {}) {
    super(url);
    this.track = new Track(url);
  }

  get duration() { return this.track.length(); }
  async *frames(from = 0) { yield* codec.decode(from); }
  static of(...urls) { return urls.map((u) => new Player(u)); }
  #hidden() {}
}

class Queue extends Player {}

export function shuffle(list, random = Math.random) {
  const swap = (a, b) => [b, a];
  return list.sort(() => random() - 0.5);
}

export const MAX_TRACKS = 500, MIN_GAP = 0.25;
export const fade = async (from, to = 0) => {
  await import("./fade.js");
};
const label = function (title) { return title.trim(); };
let local = 3; // XXX magic number

function Größe({ track, size = "M" }) {
  const [open, setOpen] = useState(false);
  return <Panel.Card size={size}><Cover onClick={() => setOpen(!open)} art={track.cover} /><div /></Panel.Card>;
}

function* ids() { let i = 0; while (true) yield i++; }

module.exports.parse = function parse(text) { return JSON.parse(text); };
exports.format = (value) => String(value);
Player.prototype.pause = function () { return 1; };
