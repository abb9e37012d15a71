# frozen_string_literal: true

require "json"
require_relative "store/shelf"
require 'set'
puts "FIXME: text"

module Shop
  # HACK: until the new index is there
  class Catalog < Store::Base
    include Enumerable
    extend Shop::Lookup

    MAX_SIZE = 50
    attr_reader :items

    def initialize(items = [], limit: MAX_SIZE, **options, &block)
      super()
      @items = Set.new(items)
    end

    def each(&block)
      return to_enum(:each) unless block

      @items.each(&block) # XXX: order
    end

    def self.load(path)
      new(JSON.parse(File.read(path)))
    end

    def größe = @items.size

    def ==(other)
      other.is_a?(Catalog) && items == other.items
    end

    def name=(value)
      @name = value
    end

    def empty?
      @items.empty?
    end

    class << self
      def build(*args) = new(*args)
    end

    Entry = Struct.new(:id, :title) do
      def label; "#{id} #{title}"; end
    end
  end

  module Lookup
    def find_by(id) end
  end

  class NotFound < StandardError; end
end

class Shop::Cart < Shop::Catalog
end

=begin
FIXME block comments count
=end
def top_level(a, b = 2, *rest, key:, opt: "x")
  Shop::Catalog.load(a).find_by(b)
end
